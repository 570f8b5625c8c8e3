use sdk::prelude::*;

const LIMIT: u32 = 10;

#[udf]
fn list_cards(_ctx: &Context, #[arg(default = LIMIT)] _limit: u32) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
