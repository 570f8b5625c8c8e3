//! What is selected: stars written out, names, rows out of lists.

use super::super::tree::{Call, Expr, Group, Item, Select};
use super::super::types::{Scope, Source, Type, Typed, quoted};
use super::super::{Result, Untranslated};
use super::expressions::items;
use super::select::plain;
use super::{Lower, calls};
use crate::sql::engine::sqlite::functions::regexps;

/// What is selected, with its name.
pub(super) struct Selected {
    pub(super) typed: Typed,
    pub(super) name: String,
}

/// One item, stars written out.
pub(super) struct Wanted {
    pub(super) expr: Expr,
    pub(super) name: String,
    /// Whether the name was given, so that others may use it.
    pub(super) named: bool,
}

impl Lower<'_> {
    /// The items, with every star and every `COLUMNS` as what it stands for.
    pub(super) fn wanted(&mut self, items: &[Item], scope: &Scope<'_>) -> Result<Vec<Wanted>> {
        let mut out = Vec::new();
        for item in items {
            match item {
                Item::Star { of, exclude, replace, rename } => {
                    let mut columns = shown(scope, of.as_deref());
                    if columns.is_empty() {
                        return Err(Untranslated);
                    }
                    let has = |name: &String| {
                        columns.iter().any(|(_, column)| column.eq_ignore_ascii_case(name))
                    };
                    if !exclude
                        .iter()
                        .chain(replace.iter().map(|(_, name)| name))
                        .chain(rename.iter().map(|(name, _)| name))
                        .all(has)
                    {
                        return Err(Untranslated);
                    }
                    // Once only: of two columns of this name DuckDB keeps one, and it refuses to replace what is left out.
                    let replaces_one = |(_, name): &(Expr, String)| {
                        let same =
                            columns.iter().filter(|(_, other)| other.eq_ignore_ascii_case(name));
                        same.count() == 1
                            && !exclude.iter().any(|other| other.eq_ignore_ascii_case(name))
                    };
                    if !replace.iter().all(replaces_one) {
                        return Err(Untranslated);
                    }
                    columns.retain(|(_, column)| {
                        !exclude.iter().any(|name| name.eq_ignore_ascii_case(column))
                    });
                    for (table, name) in columns {
                        let replaced =
                            replace.iter().find(|(_, other)| other.eq_ignore_ascii_case(&name));
                        let expr = match replaced {
                            Some((expr, _)) => expr.clone(),
                            None => Expr::Name(vec![table, name.clone()]),
                        };
                        let renamed =
                            rename.iter().find(|(other, _)| other.eq_ignore_ascii_case(&name));
                        let name = renamed.map_or(name, |(_, new)| new.clone());
                        out.push(Wanted { expr, name, named: false });
                    }
                }
                Item::Expr { expr, name, text } => match columns_in(expr)? {
                    None => {
                        let given = name.clone();
                        let own = || self.own_name(expr, scope).unwrap_or_else(|| text.clone());
                        let named = given.is_some();
                        out.push(Wanted {
                            expr: expr.clone(),
                            name: given.unwrap_or_else(own),
                            named,
                        });
                    }
                    // All would have the one name.
                    Some(_) if name.is_some() => return Err(Untranslated),
                    Some((lambda, condition)) => {
                        for (table, column) in shown(scope, None) {
                            if fits(condition, lambda, &column)? {
                                let expr =
                                    with_column(expr, &Expr::Name(vec![table, column.clone()]));
                                out.push(Wanted { expr, name: column, named: false });
                            }
                        }
                    }
                },
            }
        }
        if out.is_empty() { Err(Untranslated) } else { Ok(out) }
    }

    /// The name that DuckDB gives a column that has none: its own.
    fn own_name(&self, expr: &Expr, scope: &Scope<'_>) -> Option<String> {
        match expr {
            Expr::Field(_, name) => Some(name.clone()),
            Expr::Name(path) => {
                let (_, taken) = scope.resolve(path).ok()?;
                let name = path.last()?;
                if taken < path.len() {
                    return Some(name.clone());
                }
                self.stored_name(name, scope).ok().or_else(|| Some(name.clone()))
            }
            _ => None,
        }
    }

    /// `unnest(list)` as something selected: a row for each item. Gives its value and its place among the items.
    pub(super) fn unnest(
        &mut self,
        select: &Select,
        wanted: &[Wanted],
        scope: &mut Scope<'_>,
        from: &mut String,
    ) -> Result<Option<(usize, Typed)>> {
        let is = |expr: &Expr| matches!(expr, Expr::Call(call) if call.name == "unnest");
        let Some(at) = wanted.iter().position(|one| is(&one.expr)) else { return Ok(None) };
        let Expr::Call(call) = &wanted[at].expr else { return Err(Untranslated) };
        let grouped =
            select.group != Group::None || wanted.iter().any(|one| calls::has_aggregate(&one.expr));
        let [list] = &call.args[..] else { return Err(Untranslated) };
        if grouped || select.distinct || wanted.iter().filter(|one| is(&one.expr)).count() > 1 {
            return Err(Untranslated);
        }
        // To DuckDB the windows are over the rows before each becomes several.
        let windows = wanted.iter().any(|one| calls::finds(&one.expr, &|call| call.over.is_some()));
        if windows || select.qualify.is_some() || !select.distinct_on.is_empty() {
            return Err(Untranslated);
        }
        let list = self.expr(list, scope)?;
        let Type::List(item) = list.of.clone() else { return Err(Untranslated) };
        let alias = self.name();
        let join = if from.is_empty() { " FROM" } else { " CROSS JOIN" };
        from.push_str(&format!("{join} {} AS {}", items(&list, &item), quoted(&alias)));
        Ok(Some((at, Typed::new(format!("{}.value", quoted(&alias)), *item))))
    }

    pub(super) fn selected(
        &mut self,
        wanted: &[Wanted],
        unnested: &Option<(usize, Typed)>,
        scope: &mut Scope<'_>,
    ) -> Result<Vec<Selected>> {
        let mut out = Vec::new();
        for (at, one) in wanted.iter().enumerate() {
            let typed = match unnested {
                Some((place, typed)) if *place == at => typed.clone(),
                _ => match &one.expr {
                    // What is only handed on may have a value that nobody looks at.
                    Expr::Name(path) if path.len() == 2 && !one.named => {
                        self.handed_on(&one.expr, scope)?
                    }
                    expr => self.expr(expr, scope)?,
                },
            };
            if one.named {
                scope.aliases.push((
                    one.name.clone(),
                    Typed::new(format!("({})", typed.sql), typed.of.clone()),
                ));
            }
            out.push(Selected { typed, name: one.name.clone() });
        }
        Ok(out)
    }

    fn handed_on(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<Typed> {
        match expr {
            Expr::Name(path) => match scope.resolve(path) {
                Ok((typed, 2)) => Ok(typed),
                _ => self.expr(expr, scope),
            },
            _ => self.expr(expr, scope),
        }
    }

    /// What was selected by its name, as far as it can be said without groups.
    pub(super) fn with_names(
        &mut self,
        wanted: &[Wanted],
        scope: &Scope<'_>,
    ) -> Vec<(String, Typed)> {
        let mut named = Vec::new();
        for one in wanted.iter().filter(|one| one.named && !calls::has_aggregate(&one.expr)) {
            let inner = Scope { aliases: named.clone(), ..plain(scope) };
            if let Ok(typed) = self.expr(&one.expr, &inner) {
                named.push((one.name.clone(), Typed::new(format!("({})", typed.sql), typed.of)));
            }
        }
        named
    }
}

/// The columns that `*` stands for, with their tables.
fn shown(scope: &Scope<'_>, of: Option<&str>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for source in &scope.sources {
        let Source { alias, columns, hidden, .. } = source;
        if of.is_some_and(|of| !of.eq_ignore_ascii_case(alias)) {
            continue;
        }
        let hides = |name: &str| {
            of.is_none() && hidden.iter().any(|hidden| hidden.eq_ignore_ascii_case(name))
        };
        let shown = columns.iter().filter(|column| !hides(&column.name));
        out.extend(shown.map(|column| (alias.clone(), column.name.clone())));
    }
    out
}

/// `COLUMNS(lambda …)`, alone or as what a function is called with: one, however often.
fn columns_in(expr: &Expr) -> Result<Option<(&str, &Expr)>> {
    match expr {
        Expr::Columns(name, condition) => Ok(Some((name, condition))),
        Expr::Call(call) => {
            let mut found = None;
            for arg in &call.args {
                let next = columns_in(arg)?;
                if found.is_some() && next.is_some() && found != next {
                    return Err(Untranslated);
                }
                found = found.or(next);
            }
            Ok(found)
        }
        _ => Ok(None),
    }
}

fn with_column(expr: &Expr, column: &Expr) -> Expr {
    match expr {
        Expr::Columns(..) => column.clone(),
        Expr::Call(call) => {
            let args = call.args.iter().map(|arg| with_column(arg, column)).collect();
            Expr::Call(Box::new(Call { args, ..(**call).clone() }))
        }
        other => other.clone(),
    }
}

/// Whether the name of a column meets a condition: `name = 'x'`, `name LIKE` with `%` at its ends, or a pattern.
fn fits(condition: &Expr, lambda: &str, column: &str) -> Result<bool> {
    let is_name = |expr: &Expr| matches!(expr, Expr::Name(path) if path[..] == [lambda.to_owned()]);
    match condition {
        Expr::Call(call) if call.name == "regexp_matches" && call.args.len() == 2 => {
            let Expr::Text(pattern) = &call.args[1] else { return Err(Untranslated) };
            if !is_name(&call.args[0]) {
                return Err(Untranslated);
            }
            regexps::matches_once(pattern, column).ok_or(Untranslated)
        }
        Expr::Binary(operator, left, right) if operator == "=" && is_name(left) => match &**right {
            Expr::Text(text) => Ok(text == column),
            _ => Err(Untranslated),
        },
        Expr::Like(any_case, left, right, not) if is_name(left) => {
            let Expr::Text(pattern) = &**right else { return Err(Untranslated) };
            let (pattern, column) = match any_case {
                true => (pattern.to_lowercase(), column.to_lowercase()),
                false => (pattern.clone(), column.to_owned()),
            };
            let inner = pattern.trim_start_matches('%').trim_end_matches('%');
            if inner.contains(['%', '_']) {
                return Err(Untranslated);
            }
            let fits = match (pattern.starts_with('%'), pattern.ends_with('%')) {
                (true, true) => column.contains(inner),
                (true, false) => column.ends_with(inner),
                (false, true) => column.starts_with(inner),
                (false, false) => column == inner,
            };
            Ok(fits != *not)
        }
        _ => Err(Untranslated),
    }
}
