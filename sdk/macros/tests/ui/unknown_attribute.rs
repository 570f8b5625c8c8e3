use sdk::prelude::*;

#[udf(read("cards"))]
fn get_card(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
