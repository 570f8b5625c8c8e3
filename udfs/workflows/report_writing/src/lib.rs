//! `report_writing`: a report is drafted, checked claim by claim, put right, and handed over. Contract and
//! examples: `spec.md`. The agents it spawns are described in `agents/`.

mod report;

use sdk::prelude::*;
use sdk::workflow::{Answer, Request, Subject, Task, TurnContext, Workflow, serve, texts};

use crate::report::Report;

/// Drives the writing of a report, and keeps its draft and sources. `call` says what is wanted.
#[udf(folders)]
#[expect(
    clippy::too_many_arguments,
    reason = "one parameter per field of a workflow call, and the report's own"
)]
fn report_writing(
    ctx: &Context,
    /// A call of every workflow (`step`, `record_check_outcome`, `state`, …), or one of the report's own:
    /// `write_draft`, `read_draft`, `draft_problems`, `add_source`, `list_sources`, `read_source`.
    call: &str,
    /// The task: `{"id", "query", "waiting", "subject"}`. A subject names a report that stands; without one
    /// the report is the task's own.
    #[arg(default)]
    task: Json<Value>,
    /// What the user said this turn.
    #[arg(default)]
    message: &str,
    /// State directory of the report; empty is that of the task's report.
    #[arg(default)]
    state_dir: &str,
    /// Arguments of a recorder by name.
    #[arg(default)]
    arguments: Json<Value>,
    /// Name of a source.
    #[arg(default)]
    name: &str,
    /// Text of the draft or the source.
    #[arg(default)]
    text: &str,
) -> Result<Reply, UdfError> {
    let workflow = ReportWriting { ctx };
    let request = Request { call, task: &task, message, state_dir, arguments: &arguments };
    let report = || Report::of(ctx, state_dir, &task);
    match call {
        "write_draft" => {
            let reply = report()?.write_draft(text)?;
            // A report that was verified is not what was verified any more.
            let arguments = json!({"area": "draft"});
            let changed = Request { call: "record_invalidated", arguments: &arguments, ..request };
            serve(ctx, &workflow, &changed)?;
            Ok(reply)
        }
        "read_draft" => report()?.read_draft(),
        "draft_problems" => report()?.problems(),
        "add_source" => report()?.add_source(name, text),
        "list_sources" => report()?.list_sources(),
        "read_source" => report()?.read_source(name),
        _ => serve(ctx, &workflow, &request),
    }
}

struct ReportWriting<'c> {
    ctx: &'c Context,
}

impl ReportWriting<'_> {
    fn report(&self, ctx: &TurnContext<'_>) -> Answer<Report<'_>> {
        Ok(Report::named(self.ctx, &ctx.subject.id)?)
    }
}

impl Workflow for ReportWriting<'_> {
    fn name(&self) -> &str {
        "report_writing"
    }
    fn system_prompt(&self) -> &str {
        "You look after a report that others write and check for the user. You talk to the user: briefly, warmly \
         and truthfully. You never write or judge the report yourself."
    }
    fn worker_agent(&self) -> &str {
        "research_agent"
    }
    fn checker_agent(&self) -> Option<&str> {
        Some("fact_check")
    }
    fn round_budget(&self) -> u32 {
        3
    }
    fn resolve_subject(&self, task: &Task) -> Answer<Option<Subject>> {
        Ok(report::subject(task)?.map(Subject::new))
    }
    fn state_dir(&self, subject: &Subject) -> String {
        report::state_dir(&subject.id)
    }
    fn is_bootstrapped(&self, ctx: &TurnContext<'_>) -> Answer<bool> {
        Ok(self.report(ctx)?.draft()?.is_some())
    }
    fn work_query(&self, ctx: &TurnContext<'_>) -> Answer<String> {
        let sources = self.report(ctx)?.sources()?;
        Ok(report::work_brief(&ctx.task.query, ctx.state.update_scope, &sources))
    }
    fn check_query(&self, ctx: &TurnContext<'_>) -> Answer<String> {
        Ok(report::check_brief(&ctx.task.query))
    }
    fn describe_subject(&self, ctx: &TurnContext<'_>) -> String {
        format!("their report ({})", report::headline(&ctx.task.query))
    }
    fn presentation_prompt(&self, ctx: &TurnContext<'_>) -> String {
        let place = report::place(&ctx.subject.id);
        let text = texts::presentation(&self.describe_subject(ctx), &ctx.state.backlog);
        format!("{text}\nTell them that the report is in the state folder at {place}/draft.md.")
    }
}

#[cfg(test)]
mod tests;
