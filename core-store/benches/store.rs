//! Ratios of the store's budgets, measured in one run.

fn main() {}
