//! The agent loop: tasks that go on by themselves, turn by turn, with code deciding what code can decide
//! (workflow-engine contract §10 and §11).
//!
//! - [`AgentLoop`] makes and turns tasks: `wake` takes what wakes one, `task_turn` decides a turn, `act` carries it
//!   out, `parking` lets it wait, `ownership` says whose the subject is. [`Triggers`] runs every task that has something
//!   to do.
//! - [`decide`] asks the model once; [`SubAgentRunner`] runs a sub-agent of an [`AgentType`] to its end.
//! - [`provider`] is who answers; [`Operations`] is what can be done: actions are operations.
//! - [`WorkflowClient`] asks a workflow, which is an operation too; [`Human`] is the one channel to people.
//! - [`Tasks`] is the durable side: task documents, events, inboxes, owners.
//!
//! Invariant: what is carried out was saved before as about to be, and is never carried out twice.

mod act;
mod agent_loop;
mod agent_type;
mod bell;
mod decide;
mod ended;
mod error;
mod hooks;
mod human;
mod inbox;
mod limits;
mod operations;
mod owners;
mod ownership;
mod parking;
mod prompt;
pub mod provider;
mod speaking;
mod stamp;
mod stream;
mod sub_agent;
mod task_file;
mod task_turn;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;
mod triggers;
mod turn;
mod view;
mod wake;
mod workflow;

pub use agent_loop::{AgentLoop, Clock, NewTask};
pub use agent_type::{AgentType, BoundAction, BoundCall, Place};
pub use bell::{Bell, Stop};
pub use decide::{Ask, Session, Undecided, decide};
pub use error::AgentError;
pub use hooks::{Hooks, Listener};
pub use human::{Answer, Card, Human, Run, StoredTask};
pub use limits::Limits;
pub use operations::{CallError, HostOperations, Operations, Tool, WorkflowPlace};
pub use ownership::Standing;
pub use provider::{Provider, ProviderError};
pub use stamp::Stamp;
pub use stream::{Event, Stream, Summary};
pub use sub_agent::{SubAgentRunner, SubOutcome, SubStatus};
pub use task_file::{Asking, Ending, Parked, Saying, Status, Taken, TaskFile, Why};
pub use tasks::{OpenTask, Tasks, TasksError};
pub use tools::Tools;
pub use triggers::Triggers;
pub use turn::Turned;
pub use view::{Step, TaskView};
pub use workflow::{Description, WorkflowClient};
