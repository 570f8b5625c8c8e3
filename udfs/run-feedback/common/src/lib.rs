//! Human decisions inside workflow runs: what the operations of `run-feedback` share.
//!
//! Most of it is plain data and pure functions:
//! - [`RunId`] names a run and is the only way to a path below the base.
//! - [`State`] is a run's `state.json`: an ordered map that keeps what it does not know.
//! - [`Ask`], [`Answer`], [`Update`] turn a state into the next one, or into a [`Refusal`] with its number.
//! - [`Event`] is one numbered file of a run; [`next_event_id`] says which number is free.
//! - [`FeedbackType`] knows default options, descriptions and the [`Action`] an answer stands for.
//! - [`Comment`] is the byte-exact issue comment; [`parse_reply`] reads what people write under it.
//! - [`receive`] acts on one comment of an issue, [`poll`] on all that are new; both by the same rules.
//!
//! Three things touch the world: [`RunDir`] with its [`RunGuard`] (without which nothing of a run can be written) and
//! [`Runs`] are the files, [`CommentPoster`] and [`GitHub`] the issue tracker, [`Surroundings`] and [`Environment`] machine and user.
//!
//! Section numbers in the docs are those of the run-feedback contract.

mod after;
mod answer;
mod ask;
mod choice;
mod codes;
mod comment;
mod event;
mod github;
mod identity;
mod incoming;
mod json;
mod memory;
mod new_run;
mod notice;
mod operation;
mod outcome;
mod params;
mod poll;
mod poster;
mod process;
mod query;
mod reply;
mod respond;
mod run_dir;
mod run_id;
mod runs;
mod state;
mod surroundings;
#[cfg(feature = "testing")]
pub mod testing;
mod thread;
mod types;
mod update;
mod web;

pub use answer::{Answer, Decision};
pub use ask::{Ask, AskParams, notifications, request_id};
pub use codes::{Code, Refusal, Warning};
pub use comment::{Comment, CommentParams};
pub use event::{
    DEFAULT_SOURCE, EVENT_TYPES, Event, EventFile, EventParams, event_file_name, is_event_type,
    next_event_id, parse_counter,
};
pub use github::{Comments, GitHub, GitHubSetup, IssueComment};
pub use identity::{Identity, IdentitySource, Surroundings, identify, local_user};
pub use incoming::{Delivery, receive};
pub use new_run::{Environment, NewRun, NewRunParams};
pub use operation::{Family, Operation};
pub use outcome::{Stop, answer};
pub use params::JsonParam;
pub use poll::poll;
pub use poster::{
    CommandPoster, CommentPoster, NoPoster, POST_LIMIT, POSTER_VARIABLE, PostError, Posted,
    chosen_poster,
};
pub use query::{
    Filter, PENDING_COLUMNS, PHASES, PendingRow, RUN_COLUMNS, RunRow, pending_order,
    resume_context, run_order,
};
pub use reply::{Reply, parse_reply};
pub use respond::respond;
pub use run_dir::{RunDir, RunGuard};
pub use run_id::{DEFAULT_BASE, RunId, RunPaths, owner_of_remote, sanitise_segment, uuid_v4};
pub use runs::Runs;
pub use state::{ResumePoint, State, document};
pub use surroundings::{directory_name, origin_url, process_user};
pub use types::{Action, FeedbackType, description};
pub use update::{Update, UpdateParams};
