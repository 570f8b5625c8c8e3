use sdk::prelude::*;

#[udf]
fn get_card(_ctx: &Context, Json(id): Json<String>) -> Result<Reply, UdfError> {
    Ok(Reply::text(&id))
}

fn main() {}
