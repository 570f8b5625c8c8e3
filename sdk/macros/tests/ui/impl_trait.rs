use sdk::prelude::*;

#[udf]
fn list_cards(_ctx: &Context, name: impl ToString) -> Result<Reply, UdfError> {
    Ok(Reply::text(&name.to_string()))
}

fn main() {}
