use sdk::prelude::*;

#[udf]
fn get_card() -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
