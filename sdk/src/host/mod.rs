//! What a host needs to serve plugins (feature `store`).
//!
//! - [`HostService`] is what the host answers during a call; [`invoke`] runs a loaded plugin against
//!   one, [`with_context`] a plain function.
//! - [`Descriptor`] is what a plugin declares, [`Access`] the part of it that is enforced.
//! - [`StoreSession`] answers the requests that concern state, time and chance over a
//!   [`core_store::Store`], and refuses what is not declared. A host answers the rest itself: log
//!   lines, calls of other operations, deadlines.
//!
//! Nothing here unwinds into a plugin, and nothing of a plugin unwinds to here.

mod access;
mod descriptor;
mod service;
mod session;

pub use access::Access;
pub use descriptor::{ColumnDescriptor, Descriptor, ParamDescriptor};
pub use service::{HostService, ServiceHandle, invoke, with_context};
pub use session::{Clock, StoreSession};
