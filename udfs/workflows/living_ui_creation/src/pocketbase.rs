//! Puts a schema into a running PocketBase, over its interface.

use std::time::Duration;

use sdk::prelude::*;

use crate::http::{Answer, Request, ask};
use crate::schema::Schema;

/// The administrator of a launch. The pipeline makes it before the app is served and gives it a password that
/// nobody knows when the import is over.
pub(crate) const EMAIL: &str = "pipeline@living-ui.local";

/// Imports the collections; those that the schema does not name stay.
///
/// # Errors
/// What the server said, verbatim, behind a line for each field it is about.
pub(crate) fn import(
    ctx: &Context,
    port: u16,
    password: &str,
    schema: Schema,
    within: Duration,
) -> Result<(), Vec<String>> {
    let session = Session { ctx, port, token: String::new(), within };
    let signed_in = session.send(
        "POST",
        "/api/collections/_superusers/auth-with-password",
        &json!({"identity": EMAIL, "password": password}),
    )?;
    let signed_in: Value = accepted(&signed_in)?.body.parse().unwrap_or(Value::Null);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (token, id) = (text(&signed_in["token"]), text(&signed_in["record"]["id"]));
    let session = Session { token, ..session };
    let imported = session.import(schema);
    // Whoever saw the command line with the old password cannot use it any more.
    let (new, path) = (ctx.uuid(), format!("/api/collections/_superusers/records/{id}"));
    let changed = session.send("PATCH", &path, &json!({"password": new, "passwordConfirm": new}));
    if let Err(error) = changed.and_then(|answer| accepted(&answer).map(|_| ())) {
        ctx.warn(&format!(
            "the administrator of the launch keeps its password: {}",
            error.join("; ")
        ));
    }
    imported
}

struct Session<'c> {
    ctx: &'c Context,
    port: u16,
    token: String,
    within: Duration,
}

impl Session<'_> {
    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Answer, Vec<String>> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("Authorization", self.token.as_str())];
        let headers = if self.token.is_empty() { &[][..] } else { &headers[..] };
        let request = Request { method, path, headers, body: &body, within: self.within };
        ask(self.ctx, self.port, &request).map_err(|error| vec![error])
    }

    fn import(&self, schema: Schema) -> Result<(), Vec<String>> {
        let listed =
            self.send("GET", "/api/collections?perPage=1000&fields=id,name", &Value::Null)?;
        let listed: Value = accepted(&listed)?.body.parse().unwrap_or(Value::Null);
        let ids: Vec<(String, String)> = listed["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| Some((it["name"].as_str()?.to_owned(), it["id"].as_str()?.to_owned())))
            .collect();
        let schema = schema.with_ids(&ids);
        let body = json!({"collections": schema.to_value(), "deleteMissing": false});
        let answer = self.send("PUT", "/api/collections/import", &body)?;
        if answer.status < 300 {
            return Ok(());
        }
        let said = messages(&answer.body);
        let mut errors = schema.blamed(&said);
        errors.push(said);
        Err(errors)
    }
}

fn accepted(answer: &Answer) -> Result<&Answer, Vec<String>> {
    if answer.status < 300 {
        return Ok(answer);
    }
    Err(vec![format!("the database answered {}: {}", answer.status, messages(&answer.body))])
}

/// What an error says: the messages inside its `data`, else the one on top, else all of it.
fn messages(body: &str) -> String {
    let value: Value = body.parse().unwrap_or(Value::Null);
    let mut said = Vec::new();
    collect(&value["data"], "", &mut said);
    match (said.is_empty(), value["message"].as_str()) {
        (false, _) => said.join("\n"),
        (true, Some(message)) => message.to_owned(),
        (true, None) => body.to_owned(),
    }
}

fn collect(value: &Value, path: &str, said: &mut Vec<String>) {
    let Some(map) = value.as_object() else { return };
    if let Some(message) = map.get("message").and_then(Value::as_str) {
        // Faults of the whole import stand for themselves.
        let at = if path.is_empty() || path == "collections" {
            String::new()
        } else {
            format!("{path}: ")
        };
        said.push(format!("{at}{message}"));
        return;
    }
    for (key, value) in map {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        collect(value, &path, said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_from_the_inside() {
        for (body, want) in [
            (
                r#"{"data":{"collections":{"code":"x","message":"Data validations failed"}},"message":"Failed."}"#,
                "Data validations failed",
            ),
            (
                r#"{"data":{"indexes":{"0":{"message":"no such column: nope"}}},"message":"Failed."}"#,
                "indexes.0: no such column: nope",
            ),
            (r#"{"data":{},"message":"Failed."}"#, "Failed."),
            ("gateway", "gateway"),
        ] {
            assert_eq!(messages(body), want);
        }
    }
}
