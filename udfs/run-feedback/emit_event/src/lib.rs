//! `emit_event`: one numbered event of a run. Contract and examples: `spec.md`.

use run_feedback_common::{EventParams, JsonParam, Operation, RunDir, Stop, answer};
use sdk::prelude::*;

/// Writes an event under the next free number and notes it in the state.
#[udf(folders)]
fn emit_event(
    ctx: &Context,
    /// The run, `org/project/uuid`.
    #[arg(default)]
    run_id: &str,
    /// What happened; one of the accepted types.
    #[arg(default)]
    r#type: &str,
    /// Phase it happened in; empty = left out.
    #[arg(default)]
    phase: &str,
    /// Step it happened in; empty = left out.
    #[arg(default)]
    step: &str,
    /// Any word; empty = left out.
    #[arg(default)]
    status: &str,
    /// For people; empty = left out.
    #[arg(default)]
    message: &str,
    /// An object; empty = left out.
    #[arg(default)]
    metadata: JsonParam,
    /// A list; empty = left out.
    #[arg(default)]
    artifacts: JsonParam,
    /// A whole number of milliseconds; absent = left out.
    #[arg(default)]
    duration_ms: &str,
    /// An object; absent = left out.
    #[arg(default)]
    error: JsonParam,
    /// What wrote the event.
    #[arg(default = "emit-event.sh")]
    source: &str,
    /// Where runs live, relative to the host's working directory.
    #[arg(default = ".fractary/plugins/faber/runs")]
    base_path: &str,
) -> Result<Reply, UdfError> {
    let params = EventParams {
        run_id,
        kind: r#type,
        phase,
        step,
        status,
        message,
        metadata: &metadata.0,
        artifacts: &artifacts.0,
        duration_ms,
        error: &error.0,
        source,
    };
    answer(Operation::EmitEvent, None, emit(ctx, &params, base_path))
}

fn emit(ctx: &Context, params: &EventParams<'_>, base_path: &str) -> Result<Value, Stop> {
    let (run_id, event) = params.check()?;
    let dir = RunDir::open(ctx, base_path, &run_id)?;
    dir.check_exists()?;
    let mut guard = dir.lock()?;
    // Before the event: a state that is no state must not leave an event behind that it will never know of.
    let mut state = guard.state_if_any()?;
    let now = ctx.now();
    let (event_id, file) = guard.write_event(&event, state.as_ref(), &now)?;
    if let Some(state) = &mut state {
        state.note_event(event_id, now.to_string());
        guard.write_state(state)?;
    }
    Ok(json!({
        "status": "success",
        "operation": "emit-event",
        "event_id": event_id,
        "type": event.kind,
        "run_id": run_id.to_string(),
        "timestamp": now.to_string(),
        "event_path": dir.paths().file(&format!("events/{file}")),
    }))
}

#[cfg(test)]
mod tests {
    use run_feedback_common::testing::{BASE, Found, RUN, RunDisk};
    use sdk::testing::TestHost;

    use super::*;

    fn emit(host: &TestHost) -> Value {
        host.call_json(UDF, &[("base_path", BASE), ("run_id", RUN), ("type", "checkpoint")])
    }

    #[test]
    fn forty_emitters_get_forty_numbers() {
        let host = RunDisk::with_state("{}").host();
        let mut numbers: Vec<u64> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..40).map(|_| scope.spawn(|| emit(&host))).collect();
            calls
                .into_iter()
                .map(|call| call.join().unwrap()["event_id"].as_u64().unwrap())
                .collect()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
        let found = Found::look(&host.context(UDF));
        assert_eq!(found.events.iter().map(|(id, _)| *id).collect::<Vec<_>>(), numbers);
        assert_eq!(found.state.unwrap().last_event_id(), 40);
    }

    #[test]
    fn a_crash_loses_no_acknowledged_event_and_reuses_no_number() {
        for steps in 0.. {
            let disk = RunDisk::with_state("{}");
            assert_eq!(emit(&disk.host())["event_id"], 1);
            disk.0.stop_after(steps);
            let acknowledged = emit(&disk.host())["status"] == "success";
            for left in disk.crashes() {
                let host = left.host();
                let before = Found::look(&host.context(UDF));
                assert!(before.events.len() > usize::from(acknowledged), "after step {steps}");
                let next = emit(&host)["event_id"].as_u64().unwrap();
                let after = Found::look(&host.context(UDF));
                assert!(
                    before
                        .events
                        .iter()
                        .all(|event| event.0 < next && after.events.contains(event))
                );
                assert_eq!(after.state.unwrap().last_event_id(), next);
            }
            if acknowledged {
                break;
            }
        }
    }

    #[test]
    fn a_run_without_state_has_events_all_the_same() {
        let disk = RunDisk::default();
        disk.put("metadata.json", "{}");
        let host = disk.host();
        assert_eq!(emit(&host)["event_id"], 1);
        assert_eq!(emit(&host)["event_id"], 2);
        assert_eq!(Found::look(&host.context(UDF)).state, None);
    }

    #[test]
    fn a_link_out_of_the_base_is_refused() {
        let host = TestHost::new();
        host.seed_file("elsewhere/0f0e0d0c-0b0a-4908-8706-050403020100/state.json", "{}");
        host.seed_file("runs/acme/keep", "");
        let (base, elsewhere) = (host.app_dir().join("runs"), host.app_dir().join("elsewhere"));
        std::os::unix::fs::symlink(elsewhere, base.join("acme/widgets")).unwrap();
        let params =
            [("base_path", base.to_str().unwrap()), ("run_id", RUN), ("type", "checkpoint")];
        let reply = host.call_json(UDF, &params);
        assert_eq!(reply["error"]["code"], "INVALID_RUN_ID", "{reply}");
        let left = host.app_dir().join("elsewhere/0f0e0d0c-0b0a-4908-8706-050403020100");
        assert_eq!(std::fs::read_dir(left).unwrap().count(), 1, "nothing was written there");
    }
}
