use sdk::prelude::*;

#[udf(columns(["id"]))]
fn get_card(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
