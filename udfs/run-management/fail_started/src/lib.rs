//! `fail_started`: the host of the agents went away. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Marks every started run as failed, all at one instant, and returns their ids in file order.
#[udf(reads("runs"), writes("runs"))]
fn fail_started(
    ctx: &Context,
    /// Why they failed; empty = null.
    #[arg(default)]
    error_message: &str,
) -> Result<Reply, UdfError> {
    run_common::run::sweep(ctx, "started", "failed", error_message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdk::testing::TestHost;

    #[test]
    fn a_run_without_an_id_is_swept_and_not_listed() {
        let host = TestHost::new();
        host.seed("runs", r#"[7, {"status": "started"}, {"id": "r", "status": "started"}, {"id": "q", "status": "queued"}]"#);
        host.set_now(Timestamp::from_unix_ms(0));
        assert_eq!(host.call_json(UDF, &[]), json!({"runIds": ["r"]}));
        let at = "1970-01-01T00:00:00.000Z";
        assert_eq!(
            host.stored("runs"),
            json!([
                7,
                {"status": "failed", "finishedAt": at, "errorMessage": null},
                {"id": "r", "status": "failed", "finishedAt": at, "errorMessage": null},
                {"id": "q", "status": "queued"},
            ])
        );
    }
}
