use sdk::prelude::*;

#[udf(calls("get_card"))]
fn get_card(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
