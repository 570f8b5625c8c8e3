//! What the `#[udf]` macro writes down about an operation, and its JSON form.

use crate::abi::INTERFACE_VERSION;

/// All a host needs to know of an operation before it runs it.
#[derive(Debug)]
pub struct UdfSpec {
    /// Name of the function.
    pub op: &'static str,
    /// Name of the package, `udf-<project>-<op>`.
    pub package: Option<&'static str>,
    /// Version of the package.
    pub version: Option<&'static str>,
    /// Doc comment of the function.
    pub doc: &'static str,
    /// The parameters in order.
    pub params: &'static [ParamSpec],
    /// Collections it reads.
    pub reads: &'static [&'static str],
    /// Collections it writes.
    pub writes: &'static [&'static str],
    /// Operations it calls.
    pub calls: &'static [&'static str],
    /// Directories of logs it uses.
    pub logs: &'static [&'static str],
    /// Whether it uses the network.
    pub net: bool,
    /// Whether it uses folders.
    pub folders: bool,
    /// Whether it only reads them.
    pub folders_read_only: bool,
    /// Columns of its rows, for SQL.
    pub columns: &'static [Column],
    /// Member of the reply that holds the rows, if the reply itself is more than they are.
    pub rows: Option<&'static str>,
    /// What a panic does: `unwind` or `abort`.
    pub panic: &'static str,
}

/// One parameter.
#[derive(Debug)]
pub struct ParamSpec {
    /// Its name.
    pub name: &'static str,
    /// Its doc comment.
    pub doc: &'static str,
    /// `string`, `boolean`, `integer`, `number` or `json`.
    pub json_type: &'static str,
    /// The text it has when it is left out; without one it is required.
    pub default: Option<&'static str>,
    /// The column whose value it asks for, when all it does is that.
    pub filters: Option<&'static str>,
}

/// One column of the rows an operation returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The record's field.
    pub name: &'static str,
    /// What the field holds.
    pub kind: ColumnKind,
}

/// What a column holds. A record where it is something else shows as JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Float,
    /// `true` or `false`.
    Bool,
    /// Anything.
    Json,
}

impl Column {
    /// A column.
    pub const fn new(name: &'static str, kind: ColumnKind) -> Self {
        Self { name, kind }
    }

    /// A column of text.
    pub const fn text(name: &'static str) -> Self {
        Self::new(name, ColumnKind::Text)
    }

    /// A column of whole numbers.
    pub const fn integer(name: &'static str) -> Self {
        Self::new(name, ColumnKind::Integer)
    }

    /// A column of numbers.
    pub const fn float(name: &'static str) -> Self {
        Self::new(name, ColumnKind::Float)
    }

    /// A column of `true` and `false`.
    pub const fn boolean(name: &'static str) -> Self {
        Self::new(name, ColumnKind::Bool)
    }

    /// A column of JSON values.
    pub const fn json(name: &'static str) -> Self {
        Self::new(name, ColumnKind::Json)
    }
}

impl ColumnKind {
    /// The letter in the descriptor.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Text => "s",
            Self::Integer => "i",
            Self::Float => "f",
            Self::Bool => "b",
            Self::Json => "j",
        }
    }
}

impl UdfSpec {
    /// Nothing declared; the rest of a struct update.
    pub const EMPTY: Self = Self {
        op: "",
        package: None,
        version: None,
        doc: "",
        params: &[],
        reads: &[],
        writes: &[],
        calls: &[],
        logs: &[],
        net: false,
        folders: false,
        folders_read_only: false,
        columns: &[],
        rows: None,
        panic: "unwind",
    };

    /// The project in the package name, if it follows `udf-<project>-<op>`.
    pub fn project(&self) -> Option<&'static str> {
        let project = self.package?.strip_prefix("udf-")?.strip_suffix(self.op)?;
        project.strip_suffix('-').filter(|project| !project.is_empty())
    }

    /// The descriptor as a host reads it.
    pub fn to_json(&self) -> String {
        use crate::json::{JsonText, Object};
        let params: Vec<Object> = self
            .params
            .iter()
            .map(|param| {
                Object::new()
                    .set("name", param.name)
                    .set("doc", param.doc)
                    .set("type", param.json_type)
                    .set("default", param.default)
                    .set("required", param.default.is_none())
                    .set("filters", param.filters)
            })
            .collect();
        let columns: Vec<Object> = self
            .columns
            .iter()
            .map(|column| Object::new().set("name", column.name).set("type", column.kind.letter()))
            .collect();
        JsonText::of(
            &Object::new()
                .set("interface", INTERFACE_VERSION)
                .set("project", self.project())
                .set("op", self.op)
                .set("version", self.version)
                .set("doc", self.doc)
                .set("params", params)
                .set("reads", self.reads)
                .set("writes", self.writes)
                .set("calls", self.calls)
                .set("logs", self.logs)
                .set("net", self.net)
                .set("folders", self.folders)
                .set("folders_read_only", self.folders_read_only)
                .set("columns", columns)
                .set("rows", self.rows)
                .set("panic", self.panic)
                .set("sdk", env!("CARGO_PKG_VERSION")),
        )
        .into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_what_stands_between_prefix_and_op() {
        for (package, want) in [
            (Some("udf-feedback-management-get_card"), Some("feedback-management")),
            (Some("udf-get_card"), None),
            (Some("udf--get_card"), None),
            (Some("get_card"), None),
            (None, None),
        ] {
            assert_eq!(UdfSpec { op: "get_card", package, ..UdfSpec::EMPTY }.project(), want);
        }
    }

    #[test]
    fn the_json_form_is_fixed() {
        static PARAMS: [ParamSpec; 2] = [
            ParamSpec {
                name: "id",
                doc: "Which \"card\".",
                json_type: "string",
                default: None,
                filters: None,
            },
            ParamSpec {
                name: "n",
                doc: "",
                json_type: "string",
                default: Some(""),
                filters: Some("id"),
            },
        ];
        static COLUMNS: [Column; 2] = [Column::text("id"), Column::json("payload")];
        let spec = UdfSpec {
            op: "get_card",
            doc: "One card.",
            params: &PARAMS,
            reads: &["cards"],
            columns: &COLUMNS,
            rows: Some("cards"),
            ..UdfSpec::EMPTY
        };
        assert_eq!(
            spec.to_json(),
            concat!(
                r#"{"interface":1,"project":null,"op":"get_card","version":null,"doc":"One card.","params":["#,
                r#"{"name":"id","doc":"Which \"card\".","type":"string","default":null,"required":true,"filters":null},"#,
                r#"{"name":"n","doc":"","type":"string","default":"","required":false,"filters":"id"}],"#,
                r#""reads":["cards"],"writes":[],"calls":[],"logs":[],"net":false,"folders":false,"#,
                r#""folders_read_only":false,"#,
                r#""columns":[{"name":"id","type":"s"},{"name":"payload","type":"j"}],"#,
                r#""rows":"cards","panic":"unwind","sdk":"0.1.0"}"#
            )
        );
    }
}
