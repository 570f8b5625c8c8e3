//! The loop as a whole, over real folders, with a harness domain and a scripted model.

mod adversary;
mod crashes;
mod edges;
mod flows;
mod harness;
mod waking;
