//! What the bodies of `POST /api/exec/sql` and `POST /api/exec/widget` ask for (the SQL contract §1, §6).

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Request;
use super::error::SqlError;
use super::params::Params;
use crate::envelope;

/// The form of the rows in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// `{"q0": {"columns": […], "rows": […]}}`.
    Table,
    /// The rows alone.
    Rows,
}

/// A widget that is to be answered.
pub(super) struct WidgetRequest {
    pub(super) config: Map<String, Value>,
    pub(super) params: Params,
    /// The ids of the queries that are asked for, if not all.
    pub(super) only: Option<Vec<String>>,
}

/// `{"sql", "params"?, "overrides"?, "format"?}`.
///
/// # Errors
/// [`SqlError::Refused`] naming the member that is wrong.
pub(super) fn statement(body: &[u8]) -> Result<(Request, Format), SqlError> {
    let mut body = Body::parse(body)?;
    let sql = match body.0.remove("sql") {
        Some(Value::String(sql)) if !sql.trim().is_empty() => sql,
        Some(Value::String(_)) | None => {
            return Err(SqlError::refused("`sql` is missing or blank"));
        }
        Some(_) => return Err(SqlError::refused("`sql` must be a text")),
    };
    let format = match body.0.remove("format") {
        None | Some(Value::Null) => Format::Table,
        Some(Value::String(format)) if format == "table" => Format::Table,
        Some(Value::String(format)) if format == "rows" => Format::Rows,
        Some(_) => return Err(SqlError::refused("`format` must be `table` or `rows`")),
    };
    let request =
        Request { sql, params: body.object("params")?, overrides: body.object("overrides")? };
    Ok((request, format))
}

/// `{"config", "params"?, "only"?}`.
///
/// # Errors
/// [`SqlError::Refused`] naming the member that is wrong.
pub(super) fn widget(body: &[u8]) -> Result<WidgetRequest, SqlError> {
    let mut body = Body::parse(body)?;
    let config = match body.0.remove("config") {
        Some(Value::Object(config)) => config,
        Some(_) => return Err(SqlError::refused("`config` must be an object")),
        None => return Err(SqlError::refused("`config` is missing")),
    };
    let not_ids = || SqlError::refused("`only` must be a list of query ids");
    let only = match body.0.remove("only") {
        None | Some(Value::Null) => None,
        Some(Value::Array(ids)) => {
            let ids = ids.into_iter().map(|id| match id {
                Value::String(id) => Ok(id),
                _ => Err(not_ids()),
            });
            Some(ids.collect::<Result<Vec<_>, _>>()?)
        }
        Some(_) => return Err(not_ids()),
    };
    Ok(WidgetRequest { config, params: body.object("params")?, only })
}

/// A body: a JSON object.
struct Body(Map<String, Value>);

impl Body {
    /// By the rules of every other body, depth and repeated keys among them.
    fn parse(bytes: &[u8]) -> Result<Self, SqlError> {
        envelope::Body::parse(bytes)
            .and_then(|body| body.each_key_once("params"))
            .and_then(|body| body.each_key_once("overrides"))
            .map_err(|error| SqlError::refused(error.to_string()))?;
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        reader.disable_recursion_limit();
        let fields = Map::deserialize(&mut reader)
            .map_err(|error| SqlError::refused(format!("the body is not JSON: {error}")))?;
        Ok(Self(fields))
    }

    fn object(&mut self, key: &str) -> Result<Params, SqlError> {
        match self.0.remove(key) {
            None | Some(Value::Null) => Ok(Params::new()),
            Some(Value::Object(fields)) => Ok(fields),
            Some(_) => Err(SqlError::refused(format!("`{key}` must be an object"))),
        }
    }
}
