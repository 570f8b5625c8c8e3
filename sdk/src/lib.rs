//! All that the author of an operation touches.
//!
//! - [`udf`] makes a plain function a plugin; one per crate.
//! - [`Context`] is what the function may do: read a [`Collection`], begin a [`Transaction`], use a
//!   [`Log`], ask for the time, call another operation.
//! - [`Record`], [`Object`] and [`JsonText`] are JSON as text, so that what an operation does not
//!   understand passes through it unchanged.
//! - [`Reply`] and [`UdfError`] are what it answers; [`Page`] cuts a list to what was asked for.
//! - [`text`] has the text forms that contracts fix.
//! - [`workflow`] is the engine behind produce-and-verify work: pure, without I/O.
//! - `testing::TestHost` (feature `testing`) runs it in a unit test; `host` (feature `store`) is
//!   what a host needs to serve it.
//!
//! ```
//! use sdk::prelude::*;
//!
//! /// Returns the card with this `id` exactly as stored.
//! #[udf(reads("cards"))]
//! fn get_card(ctx: &Context, #[arg(default)] id: &str) -> Result<Reply, UdfError> {
//!     let cards = ctx.read("cards")?; // A missing collection reads as empty.
//!     Ok(match cards.get(id) {
//!         Some(card) => Reply::record(card),
//!         None => Reply::not_found(),
//!     })
//! }
//! # fn main() {}
//! ```

// The macro writes `::sdk::…`, also in this crate's own tests and examples.
extern crate self as sdk;

pub mod abi;
mod collection;
mod context;
mod descriptor;
mod error;
mod folder;
mod guard;
#[cfg(feature = "store")]
pub mod host;
mod http;
mod json;
mod log;
mod page;
mod params;
mod record;
mod reply;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
mod time;
mod transaction;
mod udf;
pub mod wire;
pub mod workflow;

pub use collection::{Collection, CollectionState};
pub use context::Context;
pub use descriptor::{Column, ColumnKind};
pub use error::{ErrorKind, UdfError};
pub use folder::{Folder, FolderEntry, FolderGuard};
pub use http::{HttpReply, HttpRequest};
pub use json::{JsonText, Object, ToJson};
pub use json_text::{Json as JsonRef, Kind as JsonKind, ParseError};
pub use log::Log;
pub use page::{Page, Rows};
pub use params::{FieldNames, FromParam, Json, Params};
pub use record::{ObjectEdit, Record};
pub use reply::Reply;
pub use sdk_macros::udf;
pub use serde_json::{Map, Value, json};
pub use time::Timestamp;
pub use transaction::{CollectionMut, Transaction};
pub use udf::Udf;

/// Everything a typical operation needs: `use sdk::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Collection, CollectionMut, CollectionState, Column, ColumnKind, Context, ErrorKind,
        FieldNames, Folder, FolderEntry, FolderGuard, HttpReply, HttpRequest, Json, JsonKind,
        JsonRef, JsonText, Log, Object, ObjectEdit, Page, Record, Reply, Timestamp, ToJson,
        Transaction, UdfError, Value, json, text, udf,
    };
}

/// What the expansion of `#[udf]` names. Not for authors: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use abi_stable::library::LibHeader;

    pub use crate::descriptor::{ParamSpec, UdfSpec};
    pub use crate::params::{Arguments, FromParam};
    pub use crate::udf::{Operation, header};
}
