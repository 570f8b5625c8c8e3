use sdk::prelude::*;

#[udf]
struct GetCard;

fn main() {}
