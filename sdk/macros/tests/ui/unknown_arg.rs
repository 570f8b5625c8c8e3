use sdk::prelude::*;

#[udf]
fn get_card(_ctx: &Context, #[arg(optional)] _id: &str) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
