//! The walk over a configuration: finds queries, `sql-runner`s and defaults, and stamps the queries.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{QueryAt, RUNNER_ROWS, RunnerAt};
use crate::sql::params::Params;
use crate::sql::plan::Runner;

/// What a walk has found so far.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) queries: Vec<QueryAt>,
    pub(super) runners: Vec<RunnerAt>,
    pub(super) defaults: Params,
}

impl Walk {
    /// Pre-order: the node, its layers, its children, then the widgets of a canvas. What has another
    /// shape is passed over.
    pub(super) fn node(&mut self, node: &mut Value, scope: &Arc<[Runner]>) {
        let Value::Object(node) = node else { return };
        let kind = node.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut inner = Arc::clone(scope);
        if let Some(Value::Object(props)) = node.get_mut("props") {
            self.default(props);
            if kind == "sql-runner" {
                let own = self.runner(props, scope);
                inner = own.map_or(inner, |own| scope.iter().cloned().chain([own]).collect());
            } else if let Some(sql) = text(props.get("sql")) {
                let id = self.query(sql, scope);
                props.insert("_queryId".to_owned(), id);
            }
            if matches!(kind.as_str(), "map" | "fused-map")
                && let Some(Value::Array(layers)) = props.get_mut("layers")
            {
                for layer in layers {
                    self.layer(layer, scope);
                }
            }
        }
        match node.get_mut("children") {
            Some(Value::Array(children)) => {
                for child in children {
                    self.node(child, &inner);
                }
            }
            Some(child) => self.node(child, &inner),
            None => {}
        }
        if kind == "canvas"
            && let Some(Value::Array(nodes)) =
                node.get_mut("props").and_then(|props| props.get_mut("nodes"))
        {
            for widget in nodes.iter_mut().filter_map(|node| node.get_mut("widget")) {
                self.node(widget, &inner);
            }
        }
    }

    fn query(&mut self, sql: String, scope: &Arc<[Runner]>) -> Value {
        let id = format!("q{}", self.queries.len());
        self.queries.push(QueryAt { id: id.clone(), sql, scope: Arc::clone(scope) });
        Value::String(id)
    }

    fn layer(&mut self, layer: &mut Value, scope: &Arc<[Runner]>) {
        if let Value::String(udf) = layer {
            *layer = Value::Object(Map::from_iter([(
                "udf".to_owned(),
                Value::String(std::mem::take(udf)),
            )]));
        }
        let Value::Object(layer) = layer else { return };
        let sql = text(layer.get("sql"))
            .or_else(|| text(layer.get("udf")).map(|udf| format!("SELECT * FROM {{{{{udf}}}}}")));
        if let Some(sql) = sql {
            layer.insert("_sql".to_owned(), Value::String(sql.clone()));
            let id = self.query(sql, scope);
            layer.insert("_queryId".to_owned(), id);
        }
    }

    /// The first default of a parameter wins.
    fn default(&mut self, props: &Map<String, Value>) {
        let param = props.get("param").and_then(Value::as_str).filter(|param| !param.is_empty());
        if let (Some(param), Some(value)) =
            (param, props.get("defaultValue").filter(|value| !value.is_null()))
        {
            self.defaults.entry(param).or_insert_with(|| value.clone());
        }
    }

    fn runner(&mut self, props: &Map<String, Value>, scope: &Arc<[Runner]>) -> Option<Runner> {
        let name = text(props.get("name"))?;
        let sql = text(props.get("sql"))?;
        let given = props.get("maxRows").filter(|rows| !rows.is_null());
        let rows = given.map_or(Some(RUNNER_ROWS), whole);
        let id = self.runners.len();
        let unfit = given.filter(|_| rows.is_none()).cloned();
        let rows = rows.unwrap_or(RUNNER_ROWS);
        self.runners.push(RunnerAt {
            name: name.clone(),
            sql,
            rows,
            unfit,
            scope: Arc::clone(scope),
        });
        Some(Runner { name, id })
    }
}

/// A number of rows, however it is written: `2.0` is one, `"2"` and `-2` are none.
fn whole(value: &Value) -> Option<usize> {
    let Value::Number(number) = value else { return None };
    if let Some(rows) = number.as_u64() {
        return Some(usize::try_from(rows).unwrap_or(usize::MAX));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and not negative, and beyond all rows there is no difference"
    )]
    number.as_f64().filter(|rows| *rows >= 0.0 && rows.fract() == 0.0).map(|rows| rows as usize)
}

/// A text that is not blank.
fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}
