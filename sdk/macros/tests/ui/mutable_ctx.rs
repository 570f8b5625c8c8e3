use sdk::prelude::*;

#[udf]
fn get_card(_ctx: &mut Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
