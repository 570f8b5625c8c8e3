//! Expressions.

use super::super::tree::{Expr, Query, Written};
use super::super::types::{Scope, Type, Typed, literal, quoted};
use super::super::{Result, Untranslated};
use super::{LONGEST, Lower, MOST_WRITTEN, casts};

/// Expressions that are written down: some are more than once, and those in them.
const MOST_STEPS: usize = 20_000;

/// Types that one is made of: it may double with each table that is made of another.
const LARGEST_TYPE: usize = 200;

impl Lower<'_> {
    /// An expression; in a statement with groups one that has a single value for each.
    pub(super) fn expr(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<Typed> {
        let Some(groups) = &scope.groups else { return self.plain(expr, scope) };
        if let Ok(typed) = self.plain(expr, scope) {
            return Ok(typed);
        }
        let typed = self.ungrouped(expr, scope)?;
        if groups.contains(&typed.sql) { Ok(scope.nulled(typed)) } else { Err(Untranslated) }
    }

    /// An expression over the rows of a group.
    pub(super) fn ungrouped(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<Typed> {
        let inner =
            Scope { outer: scope.outer, sources: scope.sources.clone(), ..Scope::default() };
        let inner = Scope { aliases: scope.aliases.clone(), ..inner };
        self.plain(expr, &inner)
    }

    fn plain(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<Typed> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(Untranslated);
        }
        let typed = self.written(expr, scope)?;
        self.written += typed.sql.len();
        if self.written > MOST_WRITTEN
            || typed.sql.len() > LONGEST
            || typed.of == Type::Unsaid
            || typed.of.size() > LARGEST_TYPE
        {
            Err(Untranslated)
        } else {
            Ok(typed)
        }
    }

    fn written(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<Typed> {
        Ok(match expr {
            Expr::Name(path) => {
                let (mut typed, taken) = scope.resolve(path)?;
                for name in &path[taken..] {
                    typed = field(&typed, name)?;
                }
                typed
            }
            Expr::Number(number) if number.bytes().all(|b| b.is_ascii_digit()) => {
                number.parse::<i64>().map_err(|_| Untranslated)?;
                Typed::new(number, Type::Integer)
            }
            // With an exponent it is a double to DuckDB as well.
            Expr::Number(number) if number.contains(['e', 'E']) => Typed::new(number, Type::Double),
            Expr::Number(number) => Typed::new(number, Type::Decimal),
            Expr::Text(text) => Typed::new(literal(text), Type::Text),
            Expr::Boolean(truth) => Typed::new(if *truth { "1" } else { "0" }, Type::Boolean),
            Expr::Null => Typed::new("NULL", Type::Null),
            Expr::Interval(months, days, micros) => {
                Typed::new(format!("'{months} {days} {micros}'"), Type::Interval)
            }
            Expr::Parens(inner) => {
                let inner = self.expr(inner, scope)?;
                Typed::new(format!("({})", inner.sql), inner.of)
            }
            Expr::Not(inner) => {
                Typed::new(format!("(NOT {})", self.condition(inner, scope)?), Type::Boolean)
            }
            Expr::Negative(inner) => {
                let inner = self.expr(inner, scope)?;
                if !inner.of.is_number() {
                    return Err(Untranslated);
                }
                let sql = match inner.of {
                    Type::Integer => format!("_minus(0, {})", inner.sql),
                    _ => format!("(- {})", inner.sql),
                };
                Typed::new(sql, inner.of)
            }
            Expr::Binary(operator, left, right) => self.binary(operator, left, right, scope)?,
            // An arrow binds less than `IS` to DuckDB.
            Expr::IsNull(inner, _) if is_arrow(inner) => return Err(Untranslated),
            Expr::IsNull(inner, not) => {
                let inner = self.expr(inner, scope)?;
                let is = if *not { "IS NOT NULL" } else { "IS NULL" };
                Typed::new(format!("({} {is})", inner.sql), Type::Boolean)
            }
            Expr::IsDistinct(left, right, distinct) => {
                let (left, right) = self.pair(left, right, scope)?;
                let is = if *distinct { "IS NOT" } else { "IS" };
                // After `IS` SQLite would read a literal NULL or 1 in its own way.
                Typed::new(format!("({} {is} ({}))", left.sql, right.sql), Type::Boolean)
            }
            Expr::Between(inner, low, high, not) => {
                let (value, low) = self.pair(inner, low, scope)?;
                let (same, high) = self.pair(inner, high, scope)?;
                if value != same {
                    return Err(Untranslated);
                }
                let not = if *not { "NOT " } else { "" };
                Typed::new(
                    format!("({} {not}BETWEEN {} AND {})", value.sql, low.sql, high.sql),
                    Type::Boolean,
                )
            }
            Expr::In(inner, list, not) => {
                let mut value = self.expr(inner, scope)?;
                let mut items = Vec::new();
                for item in list {
                    let (left, right) = self.pair(inner, item, scope)?;
                    if left.of != value.of {
                        return Err(Untranslated);
                    }
                    value = left;
                    items.push(right.sql);
                }
                let not = if *not { "NOT " } else { "" };
                Typed::new(format!("({} {not}IN ({}))", value.sql, items.join(", ")), Type::Boolean)
            }
            Expr::InQuery(inner, query, not) => {
                let value = self.expr(inner, scope)?;
                let rows = self.query(query, Some(scope))?;
                match &rows.columns[..] {
                    [column] if column.of == value.of && value.of.sorts() => {}
                    _ => return Err(Untranslated),
                }
                let not = if *not { "NOT " } else { "" };
                Typed::new(format!("({} {not}IN ({}))", value.sql, rows.sql), Type::Boolean)
            }
            Expr::Like(any_case, text, pattern, not) => {
                let (text, pattern) = (self.text(text, scope)?, self.text(pattern, scope)?);
                let not = if *not { "NOT " } else { "" };
                let sql = format!("({not}_like({text}, {pattern}, {}))", u8::from(*any_case));
                Typed::new(sql, Type::Boolean)
            }
            Expr::Case(of, whens, otherwise) => {
                self.case(of.as_deref(), whens, otherwise.as_deref(), scope)?
            }
            Expr::Cast(inner, to, tries) => {
                if matches!(to, Written::Integer(_)) && has_decimal(inner) {
                    return Err(Untranslated);
                }
                let inner = self.expr(inner, scope)?;
                casts::cast(inner, *to, *tries)?
            }
            Expr::Call(call) => self.call(call, scope)?,
            Expr::List(items) => {
                let items =
                    items.iter().map(|item| self.expr(item, scope)).collect::<Result<Vec<_>>>()?;
                let of = items.iter().try_fold(Type::Null, |of, item| of.with(&item.of))?;
                let items = items.into_iter().map(|item| casts::json(&casts::widened(item, &of)));
                let items = items.collect::<Result<Vec<_>>>()?;
                Typed::new(format!("_array({})", items.join(", ")), Type::List(Box::new(of)))
            }
            Expr::Struct(fields) => {
                let mut types: Vec<(String, Type)> = Vec::new();
                let mut parts = Vec::new();
                for (name, value) in fields {
                    if types.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                        return Err(Untranslated);
                    }
                    let value = self.expr(value, scope)?;
                    parts.push(format!("{}, {}", literal(name), casts::json(&value)?));
                    types.push((name.clone(), value.of));
                }
                Typed::new(format!("_object({})", parts.join(", ")), Type::Struct(types))
            }
            Expr::Map(entries) => {
                let mut of = Type::Null;
                let mut values = Vec::new();
                let mut keys: Vec<&str> = Vec::new();
                for (key, value) in entries {
                    let Expr::Text(key) = key else { return Err(Untranslated) };
                    if keys.contains(&key.as_str()) {
                        return Err(Untranslated);
                    }
                    keys.push(key);
                    let value = self.expr(value, scope)?;
                    of = of.with(&value.of)?;
                    values.push(value);
                }
                let part = |(key, value): (&str, Typed)| {
                    Ok(format!("{}, {}", literal(key), casts::json(&casts::widened(value, &of))?))
                };
                let parts = keys.into_iter().zip(values).map(part).collect::<Result<Vec<_>>>()?;
                Typed::new(format!("_object({})", parts.join(", ")), Type::Map(Box::new(of)))
            }
            Expr::Comprehension(what, name, list, condition) => {
                let list = self.expr(list, scope)?;
                self.comprehension(what, name, &list, condition.as_deref(), scope)?
            }
            Expr::Index(of, at) => {
                let is_known = is_number(at);
                let (of, at) = (self.expr(of, scope)?, self.expr(at, scope)?);
                match (&of.of, &at.of) {
                    (Type::List(item), Type::Integer) => item_of("_item", &of.sql, &at.sql, item),
                    // A place that is null at run time would be one that is left out.
                    (Type::Text, Type::Integer) if is_known => {
                        Typed::new(format!("_slice({0}, {1}, {1})", of.sql, at.sql), Type::Text)
                    }
                    (Type::Struct(_), Type::Text) => match unquoted(&at.sql) {
                        Some(name) => field(&of, &name)?,
                        None => return Err(Untranslated),
                    },
                    (Type::Map(value), Type::Text) => item_of("_member", &of.sql, &at.sql, value),
                    _ => return Err(Untranslated),
                }
            }
            Expr::Slice(of, low, high) => {
                let of = self.expr(of, scope)?;
                let mut ends = Vec::new();
                for end in [low, high] {
                    ends.push(match end {
                        None => "NULL".to_owned(),
                        Some(end) => self.typed(end, &Type::Integer, scope)?.sql,
                    });
                    // An end that is null at run time is not one that is left out.
                    if end.as_ref().is_some_and(|end| !is_number(end)) {
                        return Err(Untranslated);
                    }
                }
                match of.of {
                    Type::Text => {
                        Typed::new(format!("_slice({}, {})", of.sql, ends.join(", ")), Type::Text)
                    }
                    Type::List(_) => {
                        Typed::new(format!("_sublist({}, {})", of.sql, ends.join(", ")), of.of)
                    }
                    _ => return Err(Untranslated),
                }
            }
            Expr::Field(of, name) => {
                let of = self.expr(of, scope)?;
                field(&of, name)?
            }
            Expr::Query(query) => self.scalar(query, scope)?,
            Expr::Exists(query) => Typed::new(
                format!("EXISTS ({})", self.query(query, Some(scope))?.sql),
                Type::Boolean,
            ),
            Expr::Columns(..) | Expr::Lambda(..) => return Err(Untranslated),
        })
    }

    fn scalar(&mut self, query: &Query, scope: &Scope<'_>) -> Result<Typed> {
        let rows = self.query(query, Some(scope))?;
        match &rows.columns[..] {
            [column] => {
                let name = quoted(&column.name);
                let sql = format!("(SELECT _only({name}) FROM ({}))", rows.sql);
                Ok(Typed::new(sql, column.of.clone()))
            }
            _ => Err(Untranslated),
        }
    }

    /// An expression of this type.
    pub(super) fn typed(&mut self, expr: &Expr, of: &Type, scope: &Scope<'_>) -> Result<Typed> {
        let typed = self.expr(expr, scope)?;
        if typed.of == *of || typed.of == Type::Null { Ok(typed) } else { Err(Untranslated) }
    }

    /// A text.
    pub(super) fn text(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<String> {
        Ok(self.typed(expr, &Type::Text, scope)?.sql)
    }

    /// Something that is true or not.
    pub(super) fn condition(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<String> {
        Ok(self.typed(expr, &Type::Boolean, scope)?.sql)
    }

    pub(super) fn comprehension(
        &mut self,
        what: &Expr,
        name: &str,
        list: &Typed,
        condition: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Typed> {
        let Type::List(item) = &list.of else { return Err(Untranslated) };
        let alias = self.name();
        let each = items(list, item);
        let value = Typed::new(format!("{}.value", quoted(&alias)), (**item).clone());
        let inner = Scope {
            outer: Some(scope),
            aliases: vec![(name.to_owned(), value)],
            ..Scope::default()
        };
        let what = self.expr(what, &inner)?;
        let filter = match condition {
            Some(condition) => format!(" WHERE {}", self.condition(condition, &inner)?),
            None => String::new(),
        };
        let sql = format!(
            "CASE WHEN {} IS NOT NULL THEN (SELECT coalesce(_list({}), '[]') FROM {each} AS {}{filter}) END",
            list.sql,
            casts::json(&what)?,
            quoted(&alias)
        );
        Ok(Typed::new(sql, Type::List(Box::new(what.of))))
    }
}

/// Values made one type.
pub(super) fn same_type(values: Vec<Typed>) -> Result<(Vec<Typed>, Type)> {
    let of = values.iter().try_fold(Type::Null, |of, value| of.with(&value.of))?;
    Ok((values.into_iter().map(|value| casts::widened(value, &of)).collect(), of))
}

/// A member of a struct or of a JSON object.
fn field(of: &Typed, name: &str) -> Result<Typed> {
    match &of.of {
        Type::Json => {
            Ok(Typed::new(format!("_member({}, {}, 2)", of.sql, literal(name)), Type::Json))
        }
        Type::Struct(fields) => {
            let (name, value) = fields
                .iter()
                .find(|(other, _)| other.eq_ignore_ascii_case(name))
                .ok_or(Untranslated)?;
            Ok(item_of("_member", &of.sql, &literal(name), value))
        }
        _ => Err(Untranslated),
    }
}

/// A value out of a list or an object: of some types it stays JSON.
pub(super) fn item_of(function: &str, of: &str, at: &str, item: &Type) -> Typed {
    Typed::new(format!("{function}({of}, {at}, {})", u8::from(item.is_json_text())), item.clone())
}

/// The items of a list as rows whose `value` is one.
pub(super) fn items(list: &Typed, item: &Type) -> String {
    // What stays JSON is wrapped up, so that SQLite does not read it.
    if item.is_json_text() {
        format!("json_each(_wrapped({}))", list.sql)
    } else {
        format!("json_each({})", list.sql)
    }
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) => true,
        Expr::Negative(inner) => matches!(**inner, Expr::Number(_)),
        _ => false,
    }
}

/// Whether it is `x -> path`, without parentheses.
pub(super) fn is_arrow(expr: &Expr) -> bool {
    matches!(expr, Expr::Binary(operator, ..) if operator == "->")
}

/// Whether a number with a fraction was written out: DuckDB rounds the decimals that come of it in another way.
fn has_decimal(expr: &Expr) -> bool {
    match expr {
        Expr::Number(number) => number.contains('.'),
        Expr::Parens(inner) | Expr::Negative(inner) => has_decimal(inner),
        Expr::Binary(_, left, right) => has_decimal(left) || has_decimal(right),
        _ => false,
    }
}

/// The text behind a literal.
fn unquoted(sql: &str) -> Option<String> {
    let inner = sql.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.replace("''", "").contains('\'')).then(|| inner.replace("''", "'"))
}
