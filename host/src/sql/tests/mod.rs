//! The handed cases over operations that answer from the fixtures.

mod cases;
mod edges;
mod engines;
pub(in crate::sql) mod fixture;
mod parts;
mod translated;
mod widgets;
