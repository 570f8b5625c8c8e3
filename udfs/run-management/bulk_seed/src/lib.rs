//! `bulk_seed`: runs made elsewhere. Contract and examples: `spec.md`.

use std::collections::HashSet;

use run_common::params;
use sdk::prelude::*;

/// Appends runs exactly as given, skipping known ids, then writes the transcripts that do not exist yet.
#[udf(reads("runs"), writes("runs"), logs("runs"))]
fn bulk_seed(
    ctx: &Context,
    /// JSON array of runs; empty = none.
    #[arg(default)]
    runs: &str,
    /// JSON object: run id to the JSON array of its entries; empty = none.
    #[arg(default)]
    transcripts: &str,
) -> Result<Reply, UdfError> {
    let runs = params::runs(runs)?;
    let transcripts = params::transcripts(transcripts)?;
    let tx = ctx.begin(&["runs"])?;
    let mut stored = tx.collection("runs")?;
    let mut inserted = 0_usize;
    if !runs.is_empty() {
        // A missing id counts as one id like any other: the first such run goes in (the app-store contract §8.4).
        let id =
            |run: JsonRef<'_>| run.get("id").map_or_else(|| "null".to_owned(), text::canonical);
        // What another program left between the runs is none, so it has no id either.
        let runs_stored = stored.records().into_iter().filter(Record::is_object);
        let mut known: HashSet<String> = runs_stored.map(|run| id(run.json())).collect();
        for run in &runs {
            if known.insert(id(run.json())) {
                stored.push(run)?;
                inserted += 1;
            }
        }
    }
    tx.commit()?;
    let mut written = 0_usize;
    for (id, entries) in &transcripts {
        // Another program may write the same transcript: only a file that is not there yet is written.
        if let Some(log) = ctx.log(run_common::TRANSCRIPTS, run_common::transcript_id(id))? {
            written += usize::from(log.create(entries)?);
        }
    }
    let runs = Object::new().set("inserted", inserted).set("skipped", runs.len() - inserted);
    let transcripts =
        Object::new().set("written", written).set("skipped", transcripts.len() - written);
    Ok(Reply::json(Object::new().set("runs", runs).set("transcripts", transcripts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdk::testing::TestHost;

    #[test]
    fn only_a_run_without_id_stands_in_the_way_of_another() {
        let inserted = json!({"inserted": 1, "skipped": 0});
        let skipped = json!({"inserted": 0, "skipped": 1});
        for (stored, want) in [
            (json!([null, 7, "x", []]), &inserted),
            (json!([{"id": "a"}]), &inserted),
            (json!([{"taskId": "t"}]), &skipped),
            (json!([{"id": null}]), &skipped),
        ] {
            let host = TestHost::new();
            host.seed("runs", &stored.to_string());
            let reply = host.call_json(UDF, &[("runs", r#"[{"prompt": "new"}]"#)]);
            assert_eq!(reply["runs"], *want, "{stored}");
            let kept = host.stored("runs").as_array().unwrap()[..stored.as_array().unwrap().len()]
                .to_vec();
            assert_eq!(json!(kept), stored, "what is stored stays");
        }
    }
}
