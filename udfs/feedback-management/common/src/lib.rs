//! What the operations of feedback-management share.
