//! What the operations of `feedback-management` share: interaction cards, the keys a human dismissed,
//! and the inbox feed. Behaviour: the app-store contract §7 (records), §8.1 (operations), §9 (inbox).
//!
//! - [`card`] is the interaction card: its columns, its states, how one is made and superseded.
//! - [`Dismissed`] is the set of feedback keys a human has waved away.
//! - [`comment`] tells which comments are messages to the human.
//! - [`inbox`] assembles the feed out of five collections.

pub mod card;
pub mod comment;
mod dismissed;
pub mod inbox;

pub use card::COLUMNS as CARD_COLUMNS;
pub use comment::COLUMNS as COMMENT_COLUMNS;
pub use dismissed::Dismissed;
