//! `resolve_card`: the human's answer. Contract and examples: `spec.md`.

use feedback_common::card;
use sdk::prelude::*;

/// Gives a pending card its outcome and returns it. The first answer wins: a card that is no longer
/// pending is left alone and the caller is told `already resolved`.
#[udf(reads("cards"), writes("cards"), columns(feedback_common::CARD_COLUMNS))]
fn resolve_card(
    ctx: &Context,
    /// Id of the card.
    #[arg(default)]
    id: &str,
    /// The state it ends in: `answered`, `superseded`, `cancelled` or another word of the app's.
    #[arg(default)]
    status: &str,
    /// The answer as JSON text of any kind; empty = null.
    #[arg(default)]
    result: &str,
    /// Who answered; empty = null.
    #[arg(default)]
    resolved_by: &str,
) -> Result<Reply, UdfError> {
    let result = JsonText::parse(text::non_empty(result).unwrap_or("null")).map_err(|fault| {
        UdfError::raised(format!("resolve_card `result` is not valid JSON: {fault}"))
    })?;
    if matches!(status, "" | "pending") {
        return Err(UdfError::raised(format!(
            "resolve_card `status` must be a final state such as `answered` or `cancelled`, got `{status}`"
        )));
    }
    let tx = ctx.begin(&["cards"])?;
    let mut cards = tx.collection("cards")?;
    let Some(open) = cards.get(id) else { return Ok(Reply::not_found()) };
    if !card::is_pending(&open) {
        return Ok(Reply::refused("already resolved"));
    }
    let edit = open
        .edit()
        .set("status", status)
        .set_json("result", result)
        .set("resolvedBy", text::non_empty(resolved_by))
        .set("resolvedAt", ctx.now());
    let resolved = cards.update(&open, edit)?;
    tx.commit()?;
    Ok(Reply::record(resolved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdk::testing::TestHost;

    #[test]
    fn what_would_leave_the_prompt_open_is_refused_without_a_lock() {
        for (status, result) in
            [("", ""), ("pending", "1"), ("answered", "{"), ("answered", "Infinity")]
        {
            let host = TestHost::new();
            host.seed("cards", r#"[{"id": "c", "status": "pending"}]"#);
            let params = [("id", "c"), ("status", status), ("result", result)];
            assert!(host.call(UDF, &params).is_err(), "{params:?}");
            assert_eq!(host.file("state/.cards.lock"), None, "{params:?}");
        }
    }

    #[test]
    fn of_many_answers_one_wins() {
        let host = TestHost::new();
        host.seed("cards", r#"[{"id": "c", "status": "pending"}]"#);
        let names: Vec<String> = (0..12).map(|n| format!("human {n}")).collect();
        let won: Vec<String> = std::thread::scope(|scope| {
            let host = &host;
            let answers: Vec<_> = names
                .iter()
                .map(|name| {
                    scope.spawn(move || {
                        let params =
                            [("id", "c"), ("status", "answered"), ("resolved_by", name.as_str())];
                        let reply = host.call_json(UDF, &params);
                        (reply["ok"] != json!(false)).then(|| name.clone())
                    })
                })
                .collect();
            answers.into_iter().filter_map(|answer| answer.join().unwrap()).collect()
        });
        assert_eq!(won.len(), 1, "{won:?}");
        assert_eq!(host.stored("cards")[0]["resolvedBy"], won[0].as_str());
    }
}
