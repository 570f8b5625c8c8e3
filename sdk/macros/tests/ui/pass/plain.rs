//! Nothing but `sdk` in scope, and lints that plugins may turn on.
#![deny(warnings, missing_docs, unreachable_pub, unsafe_op_in_unsafe_fn)]

use sdk::{Context, Reply, UdfError, udf};

const COLUMNS: [sdk::Column; 1] = [sdk::Column::text("id")];

/// One card.
#[udf(reads("cards"), columns(&COLUMNS))]
pub fn get_card(
    ctx: &Context,
    /// Which one.
    #[arg(default)]
    id: &str,
    mut note: Option<String>,
) -> Result<Reply, UdfError> {
    note.get_or_insert_default().push('!');
    Ok(ctx.read("cards")?.get(id).map_or_else(Reply::not_found, Reply::record))
}

fn main() {}
