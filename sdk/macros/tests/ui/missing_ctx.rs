use sdk::prelude::*;

#[udf]
fn get_card(id: &str) -> Result<Reply, UdfError> {
    Ok(Reply::text(id))
}

fn main() {}
