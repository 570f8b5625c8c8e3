//! The duckdb engine.
