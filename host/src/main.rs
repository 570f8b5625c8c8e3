//! The udf-host binary.

fn main() {}
