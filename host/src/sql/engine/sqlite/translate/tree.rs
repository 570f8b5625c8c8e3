//! A statement as a tree: what of DuckDB's language can be said in SQLite's.

/// A type that can be written: `DATE '…'`, `x::T`, `CAST(x AS T)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Text,
    /// With so many bits.
    Integer(u32),
    Double,
    Boolean,
    Json,
    Date,
    Timestamp,
    /// Lists of texts, and of JSON values.
    Texts,
    Jsons,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    /// `a`, `a.b`, `a.b.c`.
    Name(Vec<String>),
    Number(String),
    Text(String),
    Boolean(bool),
    Null,
    /// `INTERVAL '1 hour'`, `INTERVAL 1 DAY`: months, days, microseconds.
    Interval(i64, i64, i64),
    Parens(Box<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(String, Box<Expr>, Box<Expr>),
    /// `IS [NOT] NULL`.
    IsNull(Box<Expr>, bool),
    /// `IS [NOT] DISTINCT FROM`; `true` for distinct.
    IsDistinct(Box<Expr>, Box<Expr>, bool),
    Between(Box<Expr>, Box<Expr>, Box<Expr>, bool),
    In(Box<Expr>, Vec<Expr>, bool),
    InQuery(Box<Expr>, Box<Query>, bool),
    /// `LIKE`, or with `true` first `ILIKE`; with `true` last, `NOT`.
    Like(bool, Box<Expr>, Box<Expr>, bool),
    Case(Option<Box<Expr>>, Vec<(Expr, Expr)>, Option<Box<Expr>>),
    /// `CAST`, or with `true` `TRY_CAST`.
    Cast(Box<Expr>, Written, bool),
    Call(Box<Call>),
    List(Vec<Expr>),
    Struct(Vec<(String, Expr)>),
    Map(Vec<(Expr, Expr)>),
    /// `[what FOR name IN list IF condition]`.
    Comprehension(Box<Expr>, String, Box<Expr>, Option<Box<Expr>>),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    Field(Box<Expr>, String),
    Query(Box<Query>),
    Exists(Box<Query>),
    /// `COLUMNS(lambda name: condition)`; `COLUMNS('pattern')` is one with a call of `regexp_matches`.
    Columns(String, Box<Expr>),
    /// `lambda name: what`.
    Lambda(String, Box<Expr>),
}

/// A call of a function, an aggregate or a window function.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) args: Vec<Expr>,
    /// `count(*)`.
    pub(super) star: bool,
    pub(super) distinct: bool,
    pub(super) order: Vec<Sort>,
    pub(super) filter: Option<Expr>,
    pub(super) over: Option<Over>,
}

/// What a window function looks at.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Over {
    pub(super) partition: Vec<Expr>,
    pub(super) order: Vec<Sort>,
    /// The frame, as written: only words and numbers.
    pub(super) frame: String,
}

/// A term of `ORDER BY`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sort {
    pub(super) by: Expr,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// `ORDER BY`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    By(Vec<Sort>),
    /// `ORDER BY ALL`; with `true` descending.
    All(bool),
}

/// A statement, or one in parentheses.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Query {
    pub(super) with: Vec<Cte>,
    pub(super) body: Body,
    pub(super) order: Order,
    pub(super) limit: Option<Expr>,
    pub(super) offset: Option<Expr>,
}

/// A common table expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cte {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) query: Query,
}

/// What gives the rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    Nested(Box<Query>),
    /// Two, put together by `UNION ALL`, `EXCEPT` …; with `true` by the names of their columns.
    Both(String, bool, Box<Body>, Box<Body>),
    Pivot(Box<Pivot>),
    Unpivot(Box<Unpivot>),
    Summarize(Box<Query>),
}

/// `PIVOT source ON on IN (values) USING using GROUP BY group`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pivot {
    pub(super) source: Factor,
    pub(super) on: String,
    pub(super) values: Vec<String>,
    pub(super) using: Call,
    pub(super) group: Vec<String>,
}

/// `UNPIVOT source ON columns INTO NAME name VALUE value`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unpivot {
    pub(super) source: Factor,
    pub(super) on: Vec<String>,
    pub(super) name: String,
    pub(super) value: String,
}

/// `SELECT …`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Select {
    pub(super) distinct: bool,
    /// `DISTINCT ON (…)`: the first row for each value of these.
    pub(super) distinct_on: Vec<Expr>,
    pub(super) items: Vec<Item>,
    pub(super) from: Option<From>,
    pub(super) filter: Option<Expr>,
    pub(super) group: Group,
    pub(super) having: Option<Expr>,
    pub(super) qualify: Option<Expr>,
}

/// One of the things that are selected.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// `t.* EXCLUDE (a) REPLACE (x AS b) RENAME (c AS d)`.
    Star {
        of: Option<String>,
        exclude: Vec<String>,
        replace: Vec<(Expr, String)>,
        rename: Vec<(String, String)>,
    },
    /// An expression, with its name or, if none is given, its text.
    Expr { expr: Expr, name: Option<String>, text: String },
}

/// `GROUP BY`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Group {
    #[default]
    None,
    By(Vec<Expr>),
    All,
    /// `GROUPING SETS`, and `ROLLUP` and `CUBE` as the sets they stand for.
    Sets(Vec<Vec<Expr>>),
}

/// The tables of a `SELECT`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct From {
    pub(super) first: Factor,
    pub(super) joins: Vec<Join>,
}

/// A table that is joined to those before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Join {
    pub(super) kind: JoinKind,
    pub(super) factor: Factor,
    pub(super) on: On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
    Semi,
    Anti,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum On {
    Nothing,
    Condition(Expr),
    Using(Vec<String>),
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Factor {
    pub(super) what: What,
    pub(super) alias: Option<String>,
    pub(super) columns: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    Table(String),
    Query(Box<Query>),
    Function(Call),
}

impl Item {
    /// `*`.
    pub(super) fn star() -> Self {
        Self::Star { of: None, exclude: Vec::new(), replace: Vec::new(), rename: Vec::new() }
    }
}
