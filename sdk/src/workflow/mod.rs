//! Produce-and-verify work, driven by code: pure, synchronous, without I/O
//! (workflow-engine contract).
//!
//! - [`Workflow`] is the questions a domain answers; about forty lines make one.
//! - [`Engine`] runs a turn or a recorder against a [`Place`], the keeper of a subject's files.
//! - [`stages`] only read [`WorkState`] and choose a [`Step`]; [`recorders`] only write it.
//! - [`report`] reads a checker's report, [`ledger`] keeps what was tried, [`journal`] what happened.
//! - [`decision`] reads what a model decided, [`bounds`] says what of it is carried out.
//! - [`operation`] makes a workflow an operation: the engine over the folders of a call.
//! - [`tap`] takes the end of a spawned agent to the recorders, [`registry`] finds a task's workflow.
//!
//! Law: stages choose and never record, recorders record and never choose. A person is asked once, when
//! the budget is spent. A report that contradicts itself is never a pass.

pub mod bounds;
mod clip;
pub mod decision;
pub mod engine;
pub mod event;
pub mod journal;
pub mod ledger;
pub mod moment;
pub mod operation;
pub mod recorders;
pub mod registry;
pub mod report;
pub mod stages;
pub mod state;
pub mod step;
pub mod sync_point;
pub mod tap;
pub mod texts;
#[expect(clippy::module_inception, reason = "the trait is the module's own noun")]
pub mod workflow;

pub use engine::{AfterError, Change, Engine, EngineError, Place, Stored, Turn};
pub use event::{Event, WorkResult};
pub use moment::Moment;
pub use operation::{Request, serve};
pub use stages::Stage;
pub use state::{Phase, StateClass, WorkState};
pub use step::{ActionCall, EndStatus, Step};
pub use tap::Route;
pub use workflow::{Answer, BootstrapMode, DomainError, Subject, Task, TurnContext, Workflow};
