//! [`Refusal`]: why an operation cannot be called.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::lossy;

/// Why an operation cannot be called. `reason` and `remedy` also go to callers, so they name no paths; `files` and
/// `detail` are for whoever looks after the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What is wrong, one line.
    pub reason: String,
    /// What would have been right, when something was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was there instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The files or folders at fault.
    #[serde(default, serialize_with = "lossy::paths")]
    pub files: Vec<PathBuf>,
    /// What to do about it.
    pub remedy: String,
    /// The whole story, for example the compiler's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether this may well pass by itself, as a full disk does: a host that watches tries again by and by.
    #[serde(skip)]
    pub(crate) passing: bool,
}

impl Refusal {
    /// Boxed, since it travels as the error of results whose values are small.
    pub(crate) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            reason: reason.into(),
            expected: None,
            found: None,
            files: Vec::new(),
            remedy: remedy.into(),
            detail: None,
            passing: false,
        })
    }

    pub(crate) fn passing(mut self: Box<Self>) -> Box<Self> {
        self.passing = true;
        self
    }

    pub(crate) fn compared(
        mut self: Box<Self>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Box<Self> {
        self.expected = Some(expected.into());
        self.found = Some(found.into());
        self
    }

    pub(crate) fn file(mut self: Box<Self>, path: impl Into<PathBuf>) -> Box<Self> {
        self.files.push(path.into());
        self
    }

    pub(crate) fn detail(mut self: Box<Self>, detail: impl Into<String>) -> Box<Self> {
        self.detail = Some(detail.into());
        self
    }
}
