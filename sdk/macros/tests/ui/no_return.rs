use sdk::prelude::*;

#[udf]
fn get_card(_ctx: &Context) {}

fn main() {}
