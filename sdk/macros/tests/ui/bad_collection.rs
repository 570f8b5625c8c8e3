use sdk::prelude::*;

#[udf(writes("state/cards.json"))]
fn get_card(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
