//! JSON files as a system of record: the host reads and writes state only through here.
//!
//! - [`Store`] owns the caches; [`Store::app`] opens a state directory; [`AppStore::read`] gives a
//!   [`Snapshot`].
//! - A [`Snapshot`] is one commit of one collection: an ordered list of [`Record`]s, kept as text.
//! - [`AppStore::begin`] takes the sentinels and gives a [`Transaction`]; waiting writers of one
//!   collection are committed as a group: one lock, one rewrite, one sync.
//! - [`Folder`] is a confined directory under one lock; writing takes a [`FolderGuard`].
//! - [`Log`] is an append-only file of JSON lines.
//! - [`Backend`] is the disk; [`MemoryBackend`] stands in for it in tests.
//!
//! Invariant: after a crash a file is its old bytes or its new bytes, never a mix, and an
//! acknowledged write is in it.

mod backend;
mod collection;
mod commit;
mod error;
mod folder;
mod group;
mod index;
mod lock;
mod log;
mod snapshot;
mod store;
mod tally;
mod transaction;

pub use backend::{Backend, Crash, Entry, FileBackend, Held, MemoryBackend, Stamp, WriteMode};
pub use collection::Record;
pub use error::StoreError;
pub use folder::{Draft, Folder, FolderGuard};
pub use log::Log;
pub use snapshot::{Snapshot, State};
pub use store::{AppStore, Durability, Store, StoreOptions, resolve_app_dir};
pub use tally::Check;
pub use transaction::{Commit, Transaction};
