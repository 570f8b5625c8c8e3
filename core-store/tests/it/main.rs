//! The store through its public API, one file per promise.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop a test as its own code does")]

mod collections;
mod crash;
mod folders;
mod groups;
mod logs;
mod model;
mod processes;
mod support;
