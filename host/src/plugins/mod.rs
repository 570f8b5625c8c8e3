//! From a folder to something that can be called: found, described, built, checked, opened, listed.
//!
//! - `roots` and `discover` find folders; `manifest` and `crate_folder` judge them.
//! - `stamp`, `shadow` and `build` get an artifact out of a crate; `artifact` checks and keeps it;
//!   `probe` finds out in a child process what it is; `load` opens it.
//! - `pack` is a folder of artifacts that were built elsewhere: how it is written, how it is checked.
//! - `engine` does all that in order, and again whenever `watch` sees a change; [`Catalog`] is where everybody else
//!   looks.

mod address;
pub(crate) mod artifact;
pub(crate) mod build;
mod catalog;
mod crate_folder;
mod discover;
pub(crate) mod engine;
mod judge;
mod load;
pub(crate) mod loaded;
mod lossy;
pub(crate) mod manifest;
pub(crate) mod pack;
pub(crate) mod probe;
mod refusal;
pub(crate) mod roots;
pub(crate) mod settings;
mod shadow;
mod stamp;
mod text_file;
mod tool_homes;
mod versions;
mod watch;

pub use address::Address;
pub use catalog::{Callable, Catalog, Entry, EntryState, EntryView, Problem, Progress, Update};
pub use discover::MAIN_PROJECT;
pub(crate) use load::open as open_library;
pub use loaded::Loaded;
pub use manifest::{DEFAULT_WORKSPACE, LaneChoice, OpSettings};
pub use refusal::Refusal;
pub use sdk::host::Descriptor;
pub use versions::MOST_VERSIONS;
pub(crate) use versions::{Entrance, Versions};
