use sdk::prelude::*;

struct Filter;

#[udf]
fn list_cards(_ctx: &Context, _filter: Filter, _names: Vec<String>) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
