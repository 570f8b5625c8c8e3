use sdk::prelude::*;

#[udf]
fn first(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

mod inner {
    use sdk::prelude::*;

    #[udf]
    fn second(_ctx: &Context, #[arg(default)] _id: &str) -> Result<Reply, UdfError> {
        Ok(Reply::null())
    }
}

fn main() {}
