use sdk::prelude::*;

#[udf]
fn get_card(_ctx: &Context) -> Result<String, UdfError> {
    Ok(String::new())
}

fn main() {}
