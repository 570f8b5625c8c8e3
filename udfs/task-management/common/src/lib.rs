//! What the operations of `task-management` share: tasks, their comments, and what hangs on them.
//! Behaviour: the app-store contract §7 (records) and §8.3 (operations).
//!
//! - [`task`] is the task: its columns, the change of one, its number.
//! - [`runs`] joins runs to tasks.
//! - [`blockers`] reads and scrubs `blockedBy`.
//! - [`cascade`] removes tasks with everything that names them.
//! - [`seed`] appends records that came from elsewhere.

pub mod blockers;
pub mod cascade;
pub mod runs;
pub mod seed;
pub mod task;

pub use task::{COLUMNS as TASK_COLUMNS, COMMENT_COLUMNS};
