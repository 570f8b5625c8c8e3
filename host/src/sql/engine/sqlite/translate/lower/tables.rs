//! What stands in `FROM`, and the statements that make one table of another.

use super::super::tree::{Call, Expr, Factor, Pivot, Query, Unpivot, What};
use super::super::types::{Column, Scope, Source, Type, Typed, literal, quoted};
use super::super::{Result, Untranslated};
use super::expressions::items;
use super::{Lower, Rows, calls, casts, distinct_names, names, renamed};
use crate::sql::table;

impl Lower<'_> {
    /// A table as it stands in `FROM`.
    pub(super) fn factor(
        &mut self,
        factor: &Factor,
        scope: &Scope<'_>,
    ) -> Result<(String, Source)> {
        let outer = scope.outer;
        if let What::Function(call) = &factor.what
            && call.name.eq_ignore_ascii_case("unnest")
        {
            return self.unnested(call, factor, scope);
        }
        let (sql, name, columns) = match &factor.what {
            What::Table(name) => {
                let cte = self.ctes.iter().rev().find(|(cte, _)| cte.eq_ignore_ascii_case(name));
                let columns = match cte {
                    Some((_, columns)) => columns.clone(),
                    None => {
                        let (_, feed) = self
                            .tables
                            .iter()
                            .find(|(table, _)| table == name)
                            .ok_or(Untranslated)?;
                        let column = |column: &table::Column| Column {
                            name: column.name.clone(),
                            of: Type::of_kind(column.kind),
                        };
                        feed.columns().iter().map(column).collect()
                    }
                };
                (quoted(name), name.clone(), columns)
            }
            What::Query(query) => {
                // A table of DuckDB may look at those beside it; here it sees only those around the whole.
                let rows = self.query(query, outer)?;
                (format!("({})", rows.sql), self.name(), rows.columns)
            }
            What::Function(call) => {
                let rows = self.series(call, outer)?;
                (format!("({})", rows.sql), call.name.clone(), rows.columns)
            }
        };
        distinct_names(&columns)?;
        let alias = factor.alias.clone().unwrap_or(name);
        let renames = factor.columns.iter().zip(&columns).any(|(new, old)| *new != old.name);
        let columns_after = renamed(columns, &factor.columns)?;
        let sql = if renames {
            let inner = self.name();
            format!(
                "(WITH {}({}) AS (SELECT * FROM {sql}) SELECT * FROM {})",
                quoted(&inner),
                names(&columns_after),
                quoted(&inner)
            )
        } else {
            sql
        };
        Ok((
            format!("{sql} AS {}", quoted(&alias)),
            Source { alias, columns: columns_after, own_name: None, hidden: Vec::new() },
        ))
    }

    /// `unnest(list) AS t(item)`: a row for each item of a list, which may be one of the tables before it.
    fn unnested(
        &mut self,
        call: &Call,
        factor: &Factor,
        scope: &Scope<'_>,
    ) -> Result<(String, Source)> {
        let [list] = &call.args[..] else { return Err(Untranslated) };
        let list = self.expr(list, scope)?;
        let Type::List(item) = &list.of else { return Err(Untranslated) };
        let alias = factor.alias.clone().unwrap_or_else(|| "unnest".to_owned());
        let columns = vec![Column { name: "unnest".to_owned(), of: (**item).clone() }];
        let columns = renamed(columns, &factor.columns)?;
        let sql = format!("{} AS {}", items(&list, item), quoted(&alias));
        Ok((sql, Source { alias, columns, own_name: Some("value"), hidden: Vec::new() }))
    }

    /// `range(…)` and `generate_series(…)` of integers or of times.
    fn series(&mut self, call: &Call, outer: Option<&Scope<'_>>) -> Result<Rows> {
        let name = call.name.to_ascii_lowercase();
        if name != "range" && name != "generate_series" {
            return Err(Untranslated);
        }
        let scope = Scope { outer, ..Scope::default() };
        let args =
            call.args.iter().map(|expr| self.expr(expr, &scope)).collect::<Result<Vec<_>>>()?;
        let (start, stop, step) = match &args[..] {
            [stop] => {
                (Typed::new("0", Type::Integer), stop.clone(), Typed::new("1", Type::Integer))
            }
            [start, stop] => (start.clone(), stop.clone(), Typed::new("1", Type::Integer)),
            [start, stop, step] => (start.clone(), stop.clone(), step.clone()),
            _ => return Err(Untranslated),
        };
        let within = if name == "range" { "<" } else { "<=" };
        let next = match (&start.of, &stop.of, &step.of) {
            // Only upwards, in steps that are known to be.
            (Type::Integer, Type::Integer, Type::Integer)
                if step.sql.parse::<u32>().is_ok_and(|step| step > 0) =>
            {
                format!("n + {}", step.sql)
            }
            (Type::Timestamp, Type::Timestamp, Type::Interval)
                if !step.sql.contains('-') && step.sql != "'0 0 0'" =>
            {
                format!("_add(n, {}, 1)", step.sql)
            }
            _ => return Err(Untranslated),
        };
        let sql = format!(
            "WITH RECURSIVE _series(n) AS (SELECT {0} WHERE {0} {within} {1} UNION ALL SELECT {next} FROM _series WHERE {next} {within} {1}) \
             SELECT n AS {2} FROM _series",
            start.sql,
            stop.sql,
            quoted(&name)
        );
        Ok(Rows { sql, columns: vec![Column { name, of: start.of }] })
    }

    pub(super) fn pivot(&mut self, pivot: &Pivot, outer: Option<&Scope<'_>>) -> Result<Rows> {
        let (from, source) = self.factor(&pivot.source, &Scope { outer, ..Scope::default() })?;
        let scope = Scope { outer, sources: vec![source], ..Scope::default() };
        let name = |name: &String| Expr::Name(vec![name.clone()]);
        let on = self.expr(&name(&pivot.on), &scope)?;
        if on.of != Type::Text {
            return Err(Untranslated);
        }
        // Without GROUP BY all columns that are not used otherwise are one.
        let used = |column: &str| {
            let mut names = pivot.using.args.iter().filter_map(|arg| match arg {
                Expr::Name(path) => path.last(),
                _ => None,
            });
            column.eq_ignore_ascii_case(&pivot.on)
                || names.any(|name| name.eq_ignore_ascii_case(column))
        };
        let is_name = |arg: &Expr| matches!(arg, Expr::Name(path) if path.len() == 1);
        let group = if pivot.group.is_empty() {
            if !pivot.using.args.iter().all(is_name) {
                return Err(Untranslated);
            }
            let columns = scope.sources[0].columns.iter().map(|column| column.name.clone());
            columns.filter(|column| !used(column)).collect::<Vec<_>>()
        } else {
            pivot.group.clone()
        };
        if group.is_empty() {
            return Err(Untranslated);
        }
        let mut cells = Vec::new();
        let mut columns = Vec::new();
        let mut groups = Vec::new();
        for group in &group {
            let typed = self.expr(&name(group), &scope)?;
            if !typed.of.sorts() {
                return Err(Untranslated);
            }
            columns.push(Column { name: self.stored_name(group, &scope)?, of: typed.of });
            groups.push(typed.sql.clone());
            cells.push(typed.sql);
        }
        for value in &pivot.values {
            // DuckDB gives it another name.
            if value.is_empty() {
                return Err(Untranslated);
            }
            let is_value = Expr::Binary(
                "=".to_owned(),
                Box::new(name(&pivot.on)),
                Box::new(Expr::Text(value.clone())),
            );
            if pivot.using.filter.is_some()
                || pivot.using.over.is_some()
                || !calls::is_aggregate(&pivot.using.name)
            {
                return Err(Untranslated);
            }
            let using = Call { filter: Some(is_value), ..pivot.using.clone() };
            let typed = self.expr(&Expr::Call(Box::new(using)), &scope)?;
            columns.push(Column { name: value.clone(), of: typed.of });
            cells.push(typed.sql);
        }
        distinct_names(&columns)?;
        let sql = format!(
            "SELECT * FROM (SELECT {} FROM {from} GROUP BY {})",
            named(&cells, &columns),
            groups.join(", ")
        );
        Ok(Rows { sql, columns })
    }

    pub(super) fn unpivot(&mut self, unpivot: &Unpivot, outer: Option<&Scope<'_>>) -> Result<Rows> {
        let (from, source) = self.factor(&unpivot.source, &Scope { outer, ..Scope::default() })?;
        let is_on = |name: &str| unpivot.on.iter().any(|on| on.eq_ignore_ascii_case(name));
        let mut columns = source.columns.clone();
        columns.retain(|column| !is_on(&column.name));
        let cell = |column: &Column| format!("{}.{}", quoted(&source.alias), quoted(&column.name));
        let mut cells = columns.iter().map(&cell).collect::<Vec<_>>();
        let alias = self.name();
        let mut of = Type::Null;
        let mut whens = String::new();
        let mut labels = Vec::new();
        for on in &unpivot.on {
            let column = source
                .columns
                .iter()
                .find(|column| column.name.eq_ignore_ascii_case(on))
                .ok_or(Untranslated)?;
            of = if of == Type::Null { column.of.clone() } else { of };
            if of != column.of {
                return Err(Untranslated);
            }
            whens.push_str(&format!(" WHEN {} THEN {}", literal(&column.name), cell(column)));
            labels.push(format!("SELECT {} AS label", literal(&column.name)));
        }
        let value = format!("CASE {}.label{whens} END", quoted(&alias));
        cells.push(format!("{}.label", quoted(&alias)));
        columns.push(Column { name: unpivot.name.clone(), of: Type::Text });
        cells.push(value.clone());
        columns.push(Column { name: unpivot.value.clone(), of });
        distinct_names(&columns)?;
        let sql = format!(
            "SELECT {} FROM {from} CROSS JOIN ({}) AS {} WHERE {value} IS NOT NULL",
            named(&cells, &columns),
            labels.join(" UNION ALL "),
            quoted(&alias)
        );
        Ok(Rows { sql: format!("SELECT * FROM ({sql})"), columns })
    }

    /// `SUMMARIZE`: the columns of it that are exact. DuckDB only estimates the others.
    pub(super) fn summarize(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Result<Rows> {
        let rows = self.query(query, outer)?;
        distinct_names(&rows.columns)?;
        let table = self.name();
        let mut arms = Vec::new();
        for column in &rows.columns {
            let of = match column.of {
                Type::Text => "VARCHAR",
                Type::Integer => "BIGINT",
                Type::Double => "DOUBLE",
                Type::Boolean => "BOOLEAN",
                Type::Date => "DATE",
                Type::Timestamp => "TIMESTAMP",
                _ => return Err(Untranslated),
            };
            let extreme = |name: &str| {
                let extreme =
                    Typed::new(format!("{name}({})", quoted(&column.name)), column.of.clone());
                casts::text(extreme).map(|typed| typed.sql)
            };
            arms.push(format!(
                "SELECT {} AS column_name, '{of}' AS column_type, {} AS \"min\", {} AS \"max\", count(*) AS \"count\" FROM {}",
                literal(&column.name),
                extreme("min")?,
                extreme("max")?,
                quoted(&table),
            ));
        }
        let column = |name: &str, of| Column { name: name.to_owned(), of };
        let columns = [
            column("column_name", Type::Text),
            column("column_type", Type::Text),
            column("min", Type::Text),
            column("max", Type::Text),
            column("count", Type::Integer),
        ];
        let unsaid = ["approx_unique", "avg", "std", "q25", "q50", "q75", "null_percentage"];
        let unsaid = unsaid.map(|name| column(name, Type::Unsaid));
        let sql = format!(
            "SELECT * FROM (WITH {} AS ({}) {})",
            quoted(&table),
            rows.sql,
            arms.join(" UNION ALL ")
        );
        Ok(Rows { sql, columns: columns.into_iter().chain(unsaid).collect() })
    }
}

/// The cells under the names of their columns.
fn named(cells: &[String], columns: &[Column]) -> String {
    super::cells(cells.iter().zip(columns).map(|(cell, column)| (&**cell, &*column.name)))
}
