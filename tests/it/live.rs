//! What is saved while the host runs answers without a restart; what is broken keeps the version before it answering.

mod artifacts;
mod cache;
mod crates;
mod endless;
mod memory;
mod odd;
mod order;
mod scene;
mod shared;
mod tools;
mod workflow;
