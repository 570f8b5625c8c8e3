use sdk::prelude::*;

#[udf]
fn list_cards(_ctx: &Context, #[arg(default = "ten")] _limit: u32) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
