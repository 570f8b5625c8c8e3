//! A type of one's own becomes a parameter type by one trait.
use sdk::prelude::*;

struct RunId(String);

impl sdk::FromParam<'_> for RunId {
    const JSON_TYPE: &'static str = "string";
    fn from_param(text: &str) -> Result<Self, String> {
        match text.split('/').count() {
            3 => Ok(Self(text.to_owned())),
            _ => Err("a run id such as `org/project/uuid`".to_owned()),
        }
    }
}

#[udf]
fn get_run(_ctx: &Context, run_id: RunId) -> std::result::Result<Reply, sdk::UdfError> {
    Ok(Reply::text(&run_id.0))
}

fn main() {}
