//! The handed cases over operations that answer from the fixtures.

mod cases;
pub(in crate::sql) mod fixture;
