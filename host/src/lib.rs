//! The host: finds plugins, builds and loads them, and runs their operations for whoever asks.
//!
//! - [`plugins`] gets operations from folders to something callable; [`Catalog`] lists them, with their states.
//! - [`dispatch`] is the one door to them: [`Dispatcher`] finds, runs, times and records a [`Call`].
//! - `lane` is where a call runs; `host_api` is what a plugin may ask during it.
//! - [`agent`] drives tasks turn by turn, by workflows and a model provider, and enters at dispatch like everybody else.
//! - [`sql`] runs statements over operations, and the queries of widgets.
//! - [`Config`] is what the host was told; [`HostError`] is every way things fail.
//!
//! Invariant: one bad folder or artifact never stops the host, nor the operations beside it.

pub mod agent;
pub mod check;
mod cli;
pub mod config;
pub mod dispatch;
pub mod envelope;
mod error;
#[cfg(debug_assertions)]
mod fault;
mod host;
mod host_api;
pub mod http;
mod lane;
mod lock_holder;
mod logging;
mod metrics;
mod net;
mod parent;
pub mod plugins;
mod processes;
mod program;
mod reply;
pub mod spec;
pub mod sql;
pub mod stats;
mod tether;
mod worker;

pub use cli::{Exit, run, run_as_program};
pub use config::Config;
pub use dispatch::{Call, CancelFlag, Dispatcher};
pub use error::HostError;
pub use host::Host;
pub use lane::{Cause, Company};
pub use plugins::{Address, Catalog};
pub use reply::Reply;
