//! `transcript`: what happened in a run. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Lists the entries of a run's transcript in file order; lines that cannot be read are passed over. A run
/// without one has none.
#[udf(logs("runs"))]
fn transcript(
    ctx: &Context,
    /// Id of the run.
    #[arg(default)]
    run_id: &str,
    /// At most this many entries; 0 = all.
    #[arg(default = 0)]
    limit: u32,
    /// How many entries were seen before; empty = none.
    #[arg(default)]
    after: &str,
    /// Comma list, or JSON list, of the top-level fields wanted of entries that are objects; `*` = all, `cursor` = its place for `after`.
    #[arg(default)]
    fields: FieldNames,
) -> Result<Reply, UdfError> {
    let entries = match ctx.log(run_common::TRANSCRIPTS, run_id)? {
        Some(log) => log.read()?,
        None => Vec::new(),
    };
    Page { limit, after, fields: &fields }.in_order(entries)?.reply()
}
