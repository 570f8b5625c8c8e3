//! `SELECT`: what is selected, from where, in which groups and order.

use super::super::tree::{Expr, From, Group, JoinKind, On, Order, Select, Sort};
use super::super::types::{Column, Scope, quoted};
use super::super::{Result, Untranslated};
use super::items::{Selected, Wanted};
use super::{Lower, Rows, all, calls, cells, distinct_names, in_order, order_by, place, sorted};

impl Lower<'_> {
    pub(super) fn select(
        &mut self,
        select: &Select,
        order: &Order,
        outer: Option<&Scope<'_>>,
    ) -> Result<Rows> {
        let mut scope = Scope { outer, ..Scope::default() };
        let mut conditions = Vec::new();
        let mut from = match &select.from {
            Some(from) => self.from(from, &mut scope, &mut conditions)?,
            None => String::new(),
        };
        let wanted = self.wanted(&select.items, &scope)?;
        let unnested = self.unnest(select, &wanted, &mut scope, &mut from)?;
        if let Some(filter) = &select.filter {
            // A name that was given to something selected may stand here as well.
            let named = self.with_names(&wanted, &scope);
            let filter = self.condition(filter, &Scope { aliases: named, ..plain(&scope) })?;
            conditions.push(filter);
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let source = format!("{from}{filter}");
        let sets = self.groups(&select.group, &wanted, select, order, &scope)?;
        let mut arms = Vec::new();
        for set in &sets {
            let all = sets.iter().flatten().flatten().cloned().collect::<Vec<_>>();
            scope.nulls = all
                .iter()
                .filter(|term| !set.iter().flatten().any(|other| other == *term))
                .cloned()
                .collect();
            scope.groups = set.as_ref().map(|_| all);
            scope.aliases.clear();
            let selected = self.selected(&wanted, &unnested, &mut scope)?;
            let mut tail = source.clone();
            match set {
                Some(terms) if !terms.is_empty() => {
                    tail.push_str(&format!(" GROUP BY {}", terms.join(", ")))
                }
                _ => {}
            }
            if let Some(having) = &select.having {
                tail.push_str(&format!(" HAVING {}", self.condition(having, &scope)?));
            }
            arms.push((selected, tail));
        }
        let columns =
            arms[0].0.iter().map(|one| Column { name: one.name.clone(), of: one.typed.of.clone() });
        let columns = columns.collect::<Vec<_>>();
        if select.distinct && !columns.iter().all(|column| column.of.sorts()) {
            return Err(Untranslated);
        }
        let picks = select.qualify.is_some() || !select.distinct_on.is_empty();
        if select.qualify.is_some() && (select.distinct || !select.distinct_on.is_empty()) {
            return Err(Untranslated);
        }
        // It is about windows: without one DuckDB refuses it.
        let windows = |expr: &Expr| calls::finds(expr, &|call| call.over.is_some());
        if let Some(qualify) = &select.qualify
            && !windows(qualify)
            && !wanted.iter().any(|one| windows(&one.expr))
        {
            return Err(Untranslated);
        }
        if arms.len() > 1 {
            if picks || select.distinct {
                return Err(Untranslated);
            }
            return sets_together(&arms, columns, order);
        }
        let (selected, tail) = arms.remove(0);
        let terms = match order {
            Order::All(descending) => all(columns.iter().map(|column| &column.of), *descending)?,
            Order::By(sorts) => {
                let mut terms = Vec::new();
                for sort in sorts {
                    terms.push((self.sorted_by(sort, &columns, select, &scope)?, sort));
                }
                let qualify = match &select.qualify {
                    Some(qualify) => Some(self.condition(qualify, &scope)?),
                    None => self.firsts(&select.distinct_on, &selected, &terms, &scope)?,
                };
                if let Some(qualify) = qualify {
                    return qualified(&selected, columns, &tail, &qualify, &terms);
                }
                terms.iter().map(|(what, sort)| sorted(what, sort)).collect()
            }
        };
        if picks {
            return Err(Untranslated);
        }
        let distinct = if select.distinct { "DISTINCT " } else { "" };
        let sql = format!("SELECT {distinct}{}{tail}{}", list(&selected), order_by(&terms));
        Ok(Rows { sql, columns })
    }

    /// What is true of the first row for each value of some expressions.
    fn firsts(
        &mut self,
        of: &[Expr],
        selected: &[Selected],
        order: &[(String, &Sort)],
        scope: &Scope<'_>,
    ) -> Result<Option<String>> {
        if of.is_empty() {
            return Ok(None);
        }
        let mut keys = Vec::new();
        for expr in of {
            let typed = self.expr(expr, scope)?;
            if scope.groups.is_some() || !typed.of.sorts() || matches!(expr, Expr::Number(_)) {
                return Err(Untranslated);
            }
            keys.push(typed.sql);
        }
        let by = |(what, sort): &(String, &Sort)| match what.parse::<usize>() {
            Ok(place) => sorted(&selected[place - 1].typed.sql, sort),
            Err(_) => sorted(what, sort),
        };
        let order = order.iter().map(by).collect::<Vec<_>>().join(", ");
        let order = if order.is_empty() { order } else { format!(" ORDER BY {order}") };
        Ok(Some(format!("row_number() OVER (PARTITION BY {}{order}) = 1", keys.join(", "))))
    }

    /// What a term of `ORDER BY` sorts by: a position, or an expression in parentheses.
    fn sorted_by(
        &mut self,
        sort: &Sort,
        columns: &[Column],
        select: &Select,
        scope: &Scope<'_>,
    ) -> Result<String> {
        if let Some(place) = place(&sort.by, columns)? {
            return Ok(place.to_string());
        }
        // To sort by what is the same for all is an error to DuckDB.
        if matches!(sort.by, Expr::Text(_) | Expr::Boolean(_) | Expr::Null) {
            return Err(Untranslated);
        }
        let by = self.expr(&sort.by, scope)?;
        // A literal would be a position, parentheses or not.
        if select.distinct || !by.of.sorts() || is_position(&by.sql) {
            Err(Untranslated)
        } else {
            Ok(format!("({})", by.sql))
        }
    }

    /// The tables, joined; what becomes a condition on their rows is added to `conditions`.
    fn from(
        &mut self,
        from: &From,
        scope: &mut Scope<'_>,
        conditions: &mut Vec<String>,
    ) -> Result<String> {
        let (sql, source) = self.factor(&from.first, scope)?;
        let mut out = format!(" FROM {sql}");
        scope.sources.push(source);
        for join in &from.joins {
            let (sql, mut source) = self.factor(&join.factor, scope)?;
            if scope.sources.iter().any(|other| other.alias.eq_ignore_ascii_case(&source.alias)) {
                return Err(Untranslated);
            }
            let mut on = Vec::new();
            let uses = matches!(join.on, On::Using(_));
            if let On::Using(names) = &join.on {
                for name in names {
                    let path = [name.clone()];
                    let (left, _) = Scope { sources: scope.sources.clone(), ..Scope::default() }
                        .resolve(&path)?;
                    let alone = Scope { sources: vec![source.clone()], ..Scope::default() };
                    let (right, _) = alone.resolve(&path)?;
                    if left.of != right.of || !left.of.sorts() {
                        return Err(Untranslated);
                    }
                    on.push(format!("{} = {}", left.sql, right.sql));
                    source.hidden.push(name.clone());
                }
            }
            scope.sources.push(source);
            if let On::Condition(condition) = &join.on {
                on.push(self.condition(condition, scope)?);
            }
            let on = on.join(" AND ");
            match join.kind {
                JoinKind::Cross => out.push_str(&format!(" CROSS JOIN {sql}")),
                JoinKind::Inner => out.push_str(&format!(" JOIN {sql} ON {on}")),
                JoinKind::Left => out.push_str(&format!(" LEFT JOIN {sql} ON {on}")),
                // What a table is joined to may be missing then, but no condition of another join knows.
                JoinKind::Right | JoinKind::Full if conditions.is_empty() && !uses => {
                    let kind = if join.kind == JoinKind::Right { "RIGHT" } else { "FULL" };
                    out.push_str(&format!(" {kind} JOIN {sql} ON {on}"));
                }
                JoinKind::Right | JoinKind::Full => return Err(Untranslated),
                JoinKind::Semi | JoinKind::Anti => {
                    let not = if join.kind == JoinKind::Anti { "NOT " } else { "" };
                    conditions.push(format!("{not}EXISTS (SELECT 1 FROM {sql} WHERE {on})"));
                    scope.sources.pop();
                }
            }
        }
        Ok(out)
    }

    /// The terms of each grouping set; `None` for a statement without groups.
    fn groups(
        &mut self,
        group: &Group,
        wanted: &[Wanted],
        select: &Select,
        order: &Order,
        scope: &Scope<'_>,
    ) -> Result<Vec<Option<Vec<String>>>> {
        let term = |lower: &mut Self, expr: &Expr| {
            let expr = match expr {
                Expr::Number(place) => {
                    let place = place.parse::<usize>().map_err(|_| Untranslated)?;
                    &wanted.get(place.wrapping_sub(1)).ok_or(Untranslated)?.expr
                }
                Expr::Name(path) if path.len() == 1 && scope.resolve(path).is_err() => {
                    let named = wanted
                        .iter()
                        .find(|one| one.named && one.name.eq_ignore_ascii_case(&path[0]));
                    &named.ok_or(Untranslated)?.expr
                }
                expr => expr,
            };
            if calls::has_aggregate(expr) {
                return Err(Untranslated);
            }
            let inner = Scope { aliases: lower.with_names(wanted, scope), ..plain(scope) };
            let typed = lower.expr(expr, &inner)?;
            // A literal would be a position, and be the same for all.
            if typed.of.sorts() && !is_position(&typed.sql) {
                Ok(typed.sql)
            } else {
                Err(Untranslated)
            }
        };
        let mut terms = |exprs: &mut dyn Iterator<Item = &Expr>| {
            exprs.map(|expr| term(self, expr)).collect::<Result<Vec<_>>>()
        };
        Ok(match group {
            Group::By(exprs) => vec![Some(terms(&mut exprs.iter())?)],
            Group::All => {
                let mut plain =
                    wanted.iter().map(|one| &one.expr).filter(|expr| !calls::has_aggregate(expr));
                vec![Some(terms(&mut plain)?)]
            }
            // Without an aggregate the set of no terms would be no group.
            Group::Sets(_) if !wanted.iter().any(|one| calls::has_aggregate(&one.expr)) => {
                return Err(Untranslated);
            }
            Group::Sets(sets) => {
                let sets = sets.iter().map(|set| Ok(Some(terms(&mut set.iter())?)));
                sets.collect::<Result<Vec<_>>>()?
            }
            Group::None => {
                let sorts = match order {
                    Order::By(sorts) => &sorts[..],
                    Order::All(_) => &[],
                };
                let mut parts =
                    wanted.iter().map(|one| &one.expr).chain(sorts.iter().map(|sort| &sort.by));
                let grouped = parts.any(calls::has_aggregate)
                    || select.having.is_some()
                    || select.qualify.as_ref().is_some_and(calls::has_aggregate);
                vec![grouped.then(Vec::new)]
            }
        })
    }
}

/// Whether SQLite takes a term for the place of something selected.
fn is_position(sql: &str) -> bool {
    sql.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'(' | b')'))
}

/// The tables of a scope, without groups.
pub(super) fn plain<'a>(scope: &Scope<'a>) -> Scope<'a> {
    Scope { outer: scope.outer, sources: scope.sources.clone(), ..Scope::default() }
}

fn list(selected: &[Selected]) -> String {
    cells(selected.iter().map(|one| (&*one.typed.sql, &*one.name)))
}

/// Grouping sets, one after the other.
fn sets_together(
    arms: &[(Vec<Selected>, String)],
    columns: Vec<Column>,
    order: &Order,
) -> Result<Rows> {
    distinct_names(&columns)?;
    let arms = arms.iter().map(|(selected, tail)| format!("SELECT {}{tail}", list(selected)));
    let sql = format!("SELECT * FROM ({})", arms.collect::<Vec<_>>().join(" UNION ALL "));
    in_order(Rows { sql, columns }, order)
}

/// Those rows of a statement whose window functions meet a condition.
fn qualified(
    selected: &[Selected],
    columns: Vec<Column>,
    tail: &str,
    qualify: &str,
    order: &[(String, &Sort)],
) -> Result<Rows> {
    distinct_names(&columns)?;
    let mut inner = selected
        .iter()
        .enumerate()
        .map(|(at, one)| format!("{} AS _cell{at}", one.typed.sql))
        .collect::<Vec<_>>();
    inner.push(format!("{qualify} AS _qualifies"));
    let mut terms = Vec::new();
    for (at, (what, sort)) in order.iter().enumerate() {
        match what.parse::<usize>() {
            Ok(place) => terms.push(sorted(&place.to_string(), sort)),
            Err(_) => {
                inner.push(format!("{what} AS _sort{at}"));
                terms.push(sorted(&format!("_sort{at}"), sort));
            }
        }
    }
    let outer = columns
        .iter()
        .enumerate()
        .map(|(at, column)| format!("_cell{at} AS {}", quoted(&column.name)));
    let sql = format!(
        "SELECT {} FROM (SELECT {}{tail}) WHERE _qualifies{}",
        outer.collect::<Vec<_>>().join(", "),
        inner.join(", "),
        order_by(&terms)
    );
    Ok(Rows { sql, columns })
}
