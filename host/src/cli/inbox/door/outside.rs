//! [`Outside`]: a host that runs, over HTTP on this machine.

use std::path::Path;

use core_store::{AppStore, Store, StoreOptions};
use json_text::quote;

use super::super::super::remote::Remote;
use super::{Door, WORKSPACE};
use crate::error::HostError;

/// A running host.
pub(in super::super) struct Outside {
    remote: Remote,
    /// Goes with every call.
    app_dir: Option<String>,
    /// The same folder, for a look at its files: the host is on this machine.
    app: Option<AppStore>,
}

impl Outside {
    /// With `app_dir`, the operations of that host work there.
    ///
    /// # Errors
    /// [`HostError::BadRequest`] for a folder that has no name in JSON.
    pub(in super::super) fn new(remote: Remote, app_dir: Option<&Path>) -> Result<Self, HostError> {
        let bad = |message: String| HostError::BadRequest { message };
        let app_dir = app_dir
            .map(std::path::absolute)
            .transpose()
            .map_err(|error| bad(format!("`--app-dir`: {error}")))?;
        let app_dir = app_dir.map(|dir| {
            dir.to_str()
                .map(str::to_owned)
                .ok_or_else(|| bad("`--app-dir` is not UTF-8".to_owned()))
        });
        let app_dir = app_dir.transpose()?;
        let app =
            app_dir.as_deref().map(|dir| Store::open(StoreOptions::default()).app(Path::new(dir)));
        Ok(Self { remote, app_dir, app })
    }
}

impl Door for Outside {
    fn call(&self, project: &str, op: &str, params: &[(&str, &str)]) -> Result<String, HostError> {
        let given =
            params.iter().copied().chain(self.app_dir.as_deref().map(|dir| ("app_dir", dir)));
        let route = format!("/api/exec/udf?workspace={WORKSPACE}&project={project}");
        super::data(self.remote.post(&route, &body(op, given))?)
    }

    fn stamp(&self) -> Option<u64> {
        None
    }

    fn damaged(&self) -> Vec<String> {
        self.app.as_ref().map(super::damaged).unwrap_or_default()
    }
}

/// `{"udf":…,"overrides":{…}}`.
fn body<'a>(op: &str, params: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut body = String::from("{\"udf\":");
    quote(op, &mut body);
    body.push_str(",\"overrides\":{");
    for (at, (name, value)) in params.enumerate() {
        if at > 0 {
            body.push(',');
        }
        quote(name, &mut body);
        body.push(':');
        quote(value, &mut body);
    }
    body.push_str("}}");
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_quotes_everything() {
        let params = [("id", "a\"b\n"), ("result", "{\"text\":\"é\"}")];
        let body = body("resolve_card", params.into_iter());
        assert_eq!(
            body,
            r#"{"udf":"resolve_card","overrides":{"id":"a\"b\n","result":"{\"text\":\"é\"}"}}"#
        );
    }
}
