use sdk::prelude::*;

#[udf]
fn get_card(_ctx: &Context, app_dir: &str) -> Result<Reply, UdfError> {
    Ok(Reply::text(app_dir))
}

fn main() {}
