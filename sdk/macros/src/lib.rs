//! The `#[udf]` attribute; authors use it as `sdk::udf`.
//!
//! - `parse` reads the attribute and the function and says what is wrong with them in sentences.
//! - `expand` writes the descriptor, the entry and the library's one exported symbol.
//!
//! `tests/ui/` holds the mistakes authors make and what they read then.

mod expand;
mod parse;

use proc_macro::TokenStream;

/// Makes a plain function an operation that a host can load. One per crate.
///
/// ```ignore
/// use sdk::prelude::*;
///
/// /// Returns the card with this `id` exactly as stored.
/// #[udf(reads("cards"))]
/// fn get_card(
///     ctx: &Context,
///     /// Which card; an empty id is never found.
///     #[arg(default)]
///     id: &str,
/// ) -> Result<Reply, UdfError> {
///     Ok(ctx.read("cards")?.get(id).map_or_else(Reply::not_found, Reply::record))
/// }
/// ```
///
/// The function stays as it is and can be called in unit tests. Beside it stands the constant `UDF`,
/// the operation as a host loads it: `TestHost::call` takes it.
///
/// | In `#[udf(…)]` | The operation may |
/// |---|---|
/// | `reads("cards", …)` | read these collections |
/// | `writes("cards", …)` | begin transactions on these collections, and read them |
/// | `calls("project.op", …)` | call these operations |
/// | `logs("artifact-chats", …)` | use logs in these directories of the app directory |
/// | `folders` | use folders |
/// | `folders(read)` | read folders, never lock or write one; such an operation can stand in a query |
/// | `net` | use the network |
/// | `columns(PATH)` | return rows with these columns; `PATH` is a `&'static [sdk::Column]` |
/// | `rows("cards")` | return its rows as the list in this member of the reply |
///
/// Parameters are `&str`, `String`, `bool`, integers, floats, `Json<T>`, `JsonText`, or `Option` of one
/// of these. Their doc comments go into the catalog. `r#type` is the parameter `type`, and `_rev` is
/// `rev`. A parameter that is not an `Option` must be given, except with
///
/// | `#[arg(…)]` | A parameter that is left out is |
/// |---|---|
/// | `default` | the zero value: `""`, `0`, `false`, `null`, `[]` |
/// | `default = "pending"` | this value (a literal) |
///
/// `#[arg(filters = "taskId")]` says that the parameter does no more than filter by a column: without it the operation
/// answers the records of the one collection that it reads, as they are; with a text in it just those of them whose
/// `taskId` is that text, in the same order. A query that compares the column then reads only those.
#[proc_macro_attribute]
pub fn udf(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::udf(attribute.into(), item.into()).into()
}
