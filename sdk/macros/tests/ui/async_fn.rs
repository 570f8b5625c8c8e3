use sdk::prelude::*;

#[udf]
async fn get_card(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
