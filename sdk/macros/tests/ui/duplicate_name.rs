use sdk::prelude::*;

#[udf]
fn get_card(_ctx: &Context, id: &str, _id: &str) -> Result<Reply, UdfError> {
    Ok(Reply::text(id))
}

fn main() {}
