use sdk::prelude::*;

#[udf(reads = "cards")]
fn get_card(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

fn main() {}
