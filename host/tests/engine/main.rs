//! The engine on real folders: cargo builds them, the linker opens them, calls reach them.
//!
//! These build crates in the target folder of the test itself, with the profile of the test.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![expect(clippy::disallowed_methods, reason = "tests lay out files of their own")]

mod broken;
mod calls;
mod support;
