//! The operations and the words they answer with (§1).

/// How an operation's errors are numbered (§11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `request_feedback`, `process_response`: the numbers 1 to 7.
    Whole,
    /// All others: 1 for bad input, 2 when the state was not written.
    Low,
}

/// One operation of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Asks a person and leaves the run waiting.
    RequestFeedback,
    /// Records the answer and says how to go on.
    ProcessResponse,
    /// Prints a request id.
    GenerateRequestId,
    /// Prints the issue comment.
    FormatFeedbackComment,
    /// Changes the waiting part of a state.
    UpdateFeedbackState,
    /// Says who is answering.
    GetUserIdentity,
    /// Writes one numbered event.
    EmitEvent,
    /// Prints a run id.
    GenerateRunId,
    /// Creates a run directory.
    InitRun,
    /// One run.
    GetRun,
    /// Runs, newest first.
    ListRuns,
    /// Open requests, oldest first.
    ListPending,
    /// Where a run goes on.
    ResumeRun,
    /// Reads an issue reply.
    ParseIssueReply,
    /// Acts on one comment of an issue.
    ReceiveReply,
    /// Reads the comments of issues with open requests and acts on them.
    PollReplies,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 16] = [
        Operation::RequestFeedback,
        Operation::ProcessResponse,
        Operation::GenerateRequestId,
        Operation::FormatFeedbackComment,
        Operation::UpdateFeedbackState,
        Operation::GetUserIdentity,
        Operation::EmitEvent,
        Operation::GenerateRunId,
        Operation::InitRun,
        Operation::GetRun,
        Operation::ListRuns,
        Operation::ListPending,
        Operation::ResumeRun,
        Operation::ParseIssueReply,
        Operation::ReceiveReply,
        Operation::PollReplies,
    ];

    /// The name it is called by, `request_feedback`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::RequestFeedback => "request_feedback",
            Operation::ProcessResponse => "process_response",
            Operation::GenerateRequestId => "generate_request_id",
            Operation::FormatFeedbackComment => "format_feedback_comment",
            Operation::UpdateFeedbackState => "update_feedback_state",
            Operation::GetUserIdentity => "get_user_identity",
            Operation::EmitEvent => "emit_event",
            Operation::GenerateRunId => "generate_run_id",
            Operation::InitRun => "init_run",
            Operation::GetRun => "get_run",
            Operation::ListRuns => "list_runs",
            Operation::ListPending => "list_pending",
            Operation::ResumeRun => "resume_run",
            Operation::ParseIssueReply => "parse_issue_reply",
            Operation::ReceiveReply => "receive_reply",
            Operation::PollReplies => "poll_replies",
        }
    }

    /// The word in the `operation` member of a reply, `request-feedback`.
    pub fn word(self) -> &'static str {
        match self {
            Operation::RequestFeedback => "request-feedback",
            Operation::ProcessResponse => "process-response",
            Operation::GenerateRequestId => "generate-request-id",
            Operation::FormatFeedbackComment => "format-feedback-comment",
            Operation::UpdateFeedbackState => "update-feedback-state",
            Operation::GetUserIdentity => "get-user-identity",
            Operation::EmitEvent => "emit-event",
            Operation::GenerateRunId => "generate-run-id",
            // The script is called after what it makes, and its callers look for that word.
            Operation::InitRun => "init-run-directory",
            Operation::GetRun => "get-run",
            Operation::ListRuns => "list-runs",
            Operation::ListPending => "list-pending",
            Operation::ResumeRun => "resume-run",
            Operation::ParseIssueReply => "parse-issue-reply",
            Operation::ReceiveReply => "receive-reply",
            Operation::PollReplies => "poll-replies",
        }
    }

    /// How its errors are numbered.
    pub fn family(self) -> Family {
        match self {
            Operation::RequestFeedback | Operation::ProcessResponse => Family::Whole,
            _ => Family::Low,
        }
    }

    /// The operation with this name, written with `_` or `-`.
    pub fn from_name(name: &str) -> Option<Operation> {
        let name = name.replace('-', "_");
        Operation::ALL.into_iter().find(|op| op.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for op in Operation::ALL {
            assert_eq!(Operation::from_name(op.name()), Some(op));
            assert_eq!(Operation::from_name(&op.name().replace('_', "-")), Some(op));
        }
        assert_eq!(Operation::from_name("approve"), None);
    }
}
