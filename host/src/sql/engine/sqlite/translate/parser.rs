//! From tokens to a [`Query`]. What is not known here is [`Untranslated`]: nothing is guessed.

use super::tokens::{Kind, Token, tokens};
use super::tree::{Body, Cte, Expr, Item, Order, Query, Select, Sort};
use super::{Result, Untranslated};

mod expressions;
mod tables;

/// How deep a statement may nest, and how high the tree of it may be, so that neither reading it nor writing it down
/// runs out of stack.
const DEPTH: usize = 60;

/// Words that start what follows an expression or a table: no alias without `AS`, and no name of a column.
const RESERVED: &[&str] = &[
    "all",
    "and",
    "anti",
    "any",
    "as",
    "asc",
    "asof",
    "between",
    "by",
    "case",
    "cast",
    "collate",
    "cross",
    "desc",
    "distinct",
    "else",
    "end",
    "escape",
    "except",
    "exists",
    "fetch",
    "for",
    "from",
    "full",
    "glob",
    "group",
    "having",
    "if",
    "ilike",
    "in",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "left",
    "like",
    "limit",
    "natural",
    "not",
    "notnull",
    "null",
    "nulls",
    "offset",
    "on",
    "or",
    "order",
    "outer",
    "pivot",
    "positional",
    "qualify",
    "right",
    "sample",
    "select",
    "semi",
    "similar",
    "summarize",
    "tablesample",
    "then",
    "union",
    "unpivot",
    "using",
    "values",
    "when",
    "where",
    "window",
    "with",
];

/// How the names start that a translation makes up.
const OURS: &[&str] = &["_made", "_cell", "_sort", "_qualifies", "_series", "_column"];

/// Reads one statement, all of it.
pub(super) fn parse(sql: &str) -> Result<Query> {
    let mut parser = Parser { sql, tokens: tokens(sql)?, at: 0, depth: 0, height: 0 };
    let query = parser.query()?;
    while parser.take(";") {}
    if parser.at < parser.tokens.len() { Err(Untranslated) } else { Ok(query) }
}

pub(super) struct Parser<'a> {
    sql: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// How high the highest tree is that was read at this depth.
    height: usize,
}

impl Parser<'_> {
    fn peek(&self, ahead: usize) -> Option<&Kind> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    fn next_is(&self, operator: &str) -> bool {
        self.operator_at(0, operator)
    }

    fn operator_at(&self, ahead: usize, operator: &str) -> bool {
        matches!(self.peek(ahead), Some(Kind::Operator(found)) if *found == operator)
    }

    fn word_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek(ahead), Some(Kind::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    fn take(&mut self, operator: &str) -> bool {
        let found = self.next_is(operator);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, operator: &str) -> Result<()> {
        self.take(operator).then_some(()).ok_or(Untranslated)
    }

    /// Takes these words if all of them come next.
    fn words(&mut self, words: &str) -> bool {
        let found = words.split(' ').enumerate().all(|(ahead, word)| self.word_at(ahead, word));
        self.at += if found { words.split(' ').count() } else { 0 };
        found
    }

    fn expect_words(&mut self, words: &str) -> Result<()> {
        self.words(words).then_some(()).ok_or(Untranslated)
    }

    fn is_reserved(word: &str) -> bool {
        RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
    }

    /// A name that may stand here if one comes next.
    fn maybe_name(&mut self) -> Option<String> {
        let name = match self.peek(0)? {
            Kind::Quoted(name) => name.clone(),
            Kind::Word(word) if !Self::is_reserved(word) => word.clone(),
            Kind::Word(_) | Kind::Text(_) | Kind::Number(_) | Kind::Operator(_) => return None,
        };
        // Only names of ours start like this.
        if OURS.iter().any(|ours| {
            name.get(..ours.len()).is_some_and(|start| start.eq_ignore_ascii_case(ours))
        }) {
            return None;
        }
        self.at += 1;
        Some(name)
    }

    fn name(&mut self) -> Result<String> {
        self.maybe_name().ok_or(Untranslated)
    }

    fn text(&mut self) -> Result<String> {
        let Some(Kind::Text(text)) = self.peek(0) else { return Err(Untranslated) };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }

    /// One or more, with commas between.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.take(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// One or more in parentheses.
    fn in_parens<T>(&mut self, one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect("(")?;
        let all = self.list(one)?;
        self.expect(")")?;
        Ok(all)
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            return Err(Untranslated);
        }
        self.depth += 1;
        let beside = std::mem::take(&mut self.height);
        let outcome = read(self);
        self.depth -= 1;
        self.height = beside.max(self.height + 1);
        outcome
    }

    /// What was read becomes part of something around it, without nesting in the text.
    fn higher(&mut self) -> Result<()> {
        self.height += 1;
        if self.height > DEPTH { Err(Untranslated) } else { Ok(()) }
    }

    fn query(&mut self) -> Result<Query> {
        self.deeper(|parser| {
            let with = if parser.words("with") { parser.list(Self::cte)? } else { Vec::new() };
            let body = parser.body()?;
            let order = parser.order()?;
            let mut limit = None;
            let mut offset = None;
            for _ in 0..2 {
                if limit.is_none() && parser.words("limit") {
                    limit = Some(parser.expr()?);
                } else if offset.is_none() && parser.words("offset") {
                    offset = Some(parser.expr()?);
                }
            }
            Ok(Query { with, body, order, limit, offset })
        })
    }

    fn cte(&mut self) -> Result<Cte> {
        let name = self.name()?;
        let columns = if self.next_is("(") { self.in_parens(Self::name)? } else { Vec::new() };
        self.expect_words("as")?;
        self.expect("(")?;
        let query = self.query()?;
        self.expect(")")?;
        Ok(Cte { name, columns, query })
    }

    fn order(&mut self) -> Result<Order> {
        if !self.words("order by") {
            return Ok(Order::By(Vec::new()));
        }
        if self.words("all") {
            let descending = self.words("desc");
            return Ok(Order::All(descending));
        }
        Ok(Order::By(self.list(Self::sort)?))
    }

    fn sort(&mut self) -> Result<Sort> {
        let by = self.expr()?;
        // DuckDB refuses a literal here unless it is a position.
        if matches!(by, Expr::Text(_) | Expr::Null) {
            return Err(Untranslated);
        }
        let descending = self.words("desc");
        if !descending {
            self.words("asc");
        }
        let nulls_first = self.words("nulls first");
        if !nulls_first {
            self.words("nulls last");
        }
        Ok(Sort { by, descending, nulls_first })
    }

    fn body(&mut self) -> Result<Body> {
        let mut left = self.intersection()?;
        loop {
            let Some(operator) = ["UNION", "EXCEPT"].into_iter().find(|word| self.words(word))
            else {
                return Ok(left);
            };
            let all = self.words("all");
            let by_name = self.words("by name");
            if operator == "EXCEPT" && (all || by_name) {
                return Err(Untranslated);
            }
            let operator = if all { "UNION ALL" } else { operator };
            self.higher()?;
            left = Body::Both(
                operator.to_owned(),
                by_name,
                Box::new(left),
                Box::new(self.intersection()?),
            );
        }
    }

    fn intersection(&mut self) -> Result<Body> {
        let mut left = self.rows()?;
        while self.words("intersect") {
            if self.words("all") || self.words("by name") {
                return Err(Untranslated);
            }
            self.higher()?;
            left =
                Body::Both("INTERSECT".to_owned(), false, Box::new(left), Box::new(self.rows()?));
        }
        Ok(left)
    }

    fn rows(&mut self) -> Result<Body> {
        if self.take("(") {
            let query = self.query()?;
            self.expect(")")?;
            return Ok(Body::Nested(Box::new(query)));
        }
        if self.words("values") {
            return Ok(Body::Values(self.list(|parser| parser.in_parens(Self::expr))?));
        }
        if self.words("summarize") {
            return Ok(Body::Summarize(Box::new(self.query()?)));
        }
        if self.words("pivot") {
            return self.pivot();
        }
        if self.words("unpivot") {
            return self.unpivot();
        }
        self.select()
    }

    fn select(&mut self) -> Result<Body> {
        let mut select = Select::default();
        let from_first = self.words("from");
        if from_first {
            select.from = Some(self.from()?);
        }
        if self.words("select") {
            if self.words("distinct on") {
                select.distinct_on = self.in_parens(Self::expr)?;
            } else {
                select.distinct = self.words("distinct");
            }
            select.items = self.list(Self::item)?;
        } else if from_first {
            select.items = vec![Item::star()];
        } else {
            return Err(Untranslated);
        }
        if !from_first && self.words("from") {
            select.from = Some(self.from()?);
        }
        if self.words("where") {
            select.filter = Some(self.expr()?);
        }
        if self.words("group by") {
            select.group = self.group()?;
        }
        if self.words("having") {
            select.having = Some(self.expr()?);
        }
        if self.words("qualify") {
            select.qualify = Some(self.expr()?);
        }
        Ok(Body::Select(Box::new(select)))
    }

    fn item(&mut self) -> Result<Item> {
        let of = match (self.peek(0), self.operator_at(1, ".") && self.operator_at(2, "*")) {
            (Some(Kind::Word(name) | Kind::Quoted(name)), true) => Some(name.clone()),
            _ => None,
        };
        self.at += if of.is_some() { 2 } else { 0 };
        if self.take("*") {
            let mut exclude = Vec::new();
            if self.words("exclude") {
                exclude = if self.next_is("(") {
                    self.in_parens(Self::name)?
                } else {
                    vec![self.name()?]
                };
            }
            let mut replace = Vec::new();
            if self.words("replace") {
                replace = self.in_parens(|parser| {
                    let expr = parser.expr()?;
                    parser.expect_words("as")?;
                    Ok((expr, parser.name()?))
                })?;
            }
            let mut rename = Vec::new();
            if self.words("rename") {
                rename = self.in_parens(|parser| {
                    let name = parser.name()?;
                    parser.expect_words("as")?;
                    Ok((name, parser.name()?))
                })?;
            }
            return Ok(Item::Star { of, exclude, replace, rename });
        }
        let start = self.tokens.get(self.at).ok_or(Untranslated)?.start;
        let expr = self.expr()?;
        let end = self.tokens[self.at - 1].end;
        let name = if self.words("as") { Some(self.name()?) } else { self.maybe_name() };
        Ok(Item::Expr { expr, name, text: self.sql[start..end].to_owned() })
    }
}
