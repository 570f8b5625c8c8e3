use sdk::prelude::*;

#[udf]
fn get_card<T: ToString>(_ctx: &Context, id: T) -> Result<Reply, UdfError> {
    Ok(Reply::text(&id.to_string()))
}

fn main() {}
