//! Functions, aggregates and window functions: those that mean the same, or have one here that does.

use super::super::tree::{Call, Expr, Over, Sort};
use super::super::types::{Scope, Type, Typed};
use super::super::{Result, Untranslated};
use super::select::plain;
use super::{Lower, casts, sorted};

const AGGREGATES: &[&str] = &[
    "any_value",
    "first",
    "last",
    "arg_max",
    "arg_min",
    "array_agg",
    "avg",
    "bool_and",
    "bool_or",
    "count",
    "count_if",
    "group_concat",
    "list",
    "listagg",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "mode",
    "quantile_cont",
    "string_agg",
    "sum",
];

const WINDOWS: &[&str] = &[
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

pub(super) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

/// Whether it is an aggregate, or is made of one.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    finds(expr, &|call| call.over.is_none() && is_aggregate(&call.name))
}

/// Whether it is a call of this kind, or is made of one.
pub(super) fn finds(expr: &Expr, wanted: &dyn Fn(&Call) -> bool) -> bool {
    let one = |expr: &Expr| finds(expr, wanted);
    match expr {
        Expr::Call(call) => {
            wanted(call)
                || call.args.iter().any(one)
                || call.over.as_ref().is_some_and(|over| {
                    over.partition.iter().any(one) || over.order.iter().any(|sort| one(&sort.by))
                })
        }
        Expr::Parens(a)
        | Expr::Not(a)
        | Expr::Negative(a)
        | Expr::IsNull(a, _)
        | Expr::Cast(a, ..)
        | Expr::Field(a, _)
        | Expr::InQuery(a, ..) => one(a),
        Expr::Binary(_, a, b)
        | Expr::IsDistinct(a, b, _)
        | Expr::Like(_, a, b, _)
        | Expr::Index(a, b) => one(a) || one(b),
        Expr::Between(a, b, c, _) => one(a) || one(b) || one(c),
        Expr::In(a, list, _) => one(a) || list.iter().any(one),
        Expr::Case(of, whens, otherwise) => {
            of.iter().chain(otherwise).any(|expr| one(expr))
                || whens.iter().any(|(when, then)| one(when) || one(then))
        }
        Expr::List(items) => items.iter().any(one),
        Expr::Struct(fields) => fields.iter().any(|(_, value)| one(value)),
        Expr::Map(entries) => entries.iter().any(|(_, value)| one(value)),
        Expr::Comprehension(what, _, list, condition) => {
            one(what) || one(list) || condition.as_ref().is_some_and(|condition| one(condition))
        }
        Expr::Slice(a, low, high) => one(a) || low.iter().chain(high).any(|end| one(end)),
        Expr::Name(_)
        | Expr::Number(_)
        | Expr::Text(_)
        | Expr::Boolean(_)
        | Expr::Null
        | Expr::Interval(..)
        | Expr::Query(_)
        | Expr::Exists(_)
        | Expr::Columns(..)
        | Expr::Lambda(..) => false,
    }
}

impl Lower<'_> {
    pub(super) fn call(&mut self, call: &Call, scope: &Scope<'_>) -> Result<Typed> {
        if is_aggregate(&call.name) {
            return self.aggregate(call, scope);
        }
        if call.star || call.distinct || !call.order.is_empty() || call.filter.is_some() {
            return Err(Untranslated);
        }
        if let Some(made) = self.of_lambda(call, scope)? {
            return Ok(made);
        }
        let args = call.args.iter().map(|arg| self.expr(arg, scope)).collect::<Result<Vec<_>>>()?;
        if let Some(over) = &call.over {
            return self.window(call, args, over, scope);
        }
        self.function(&call.name, &call.args, args)
    }

    fn aggregate(&mut self, call: &Call, scope: &Scope<'_>) -> Result<Typed> {
        let inside = |lower: &mut Self, expr: &Expr| match call.over {
            Some(_) => lower.expr(expr, scope),
            // What was selected before has no name in there.
            None => lower.ungrouped(expr, &plain(scope)),
        };
        let args = call.args.iter().map(|arg| inside(self, arg)).collect::<Result<Vec<_>>>()?;
        let name = call.name.as_str();
        if call.star && name != "count"
            || call.distinct && !matches!(name, "count" | "sum" | "min" | "max")
        {
            return Err(Untranslated);
        }
        let mut order = String::new();
        if !call.order.is_empty() {
            let terms = call.order.iter().map(|sort| {
                let by = inside(self, &sort.by)?;
                if by.of.sorts() { Ok(sorted(&by.sql, sort)) } else { Err(Untranslated) }
            });
            order = format!(" ORDER BY {}", terms.collect::<Result<Vec<_>>>()?.join(", "));
        }
        let ordered = matches!(
            name,
            "list"
                | "array_agg"
                | "string_agg"
                | "group_concat"
                | "listagg"
                | "first"
                | "last"
                | "any_value"
        );
        if !order.is_empty() && (!ordered || call.over.is_some()) {
            return Err(Untranslated);
        }
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let (sql, of) = match (name, &args[..]) {
            ("count", []) => ("count(*)".to_owned(), Type::Integer),
            ("count", [one]) => {
                if call.distinct && !one.of.sorts() {
                    return Err(Untranslated);
                }
                (format!("count({distinct}{})", one.sql), Type::Integer)
            }
            ("sum", [one]) if matches!(one.of, Type::Integer | Type::Boolean) => {
                (format!("sum({distinct}{})", one.sql), Type::Integer)
            }
            ("sum", [one]) if one.of == Type::Double && call.over.is_none() && !call.distinct => {
                (format!("_sum({})", one.sql), Type::Double)
            }
            ("avg" | "mean", [one]) if one.of == Type::Double && call.over.is_none() => {
                (format!("_avg({})", one.sql), Type::Double)
            }
            ("sum", [one]) if one.of == Type::Double => {
                (format!("sum({distinct}{})", one.sql), Type::Double)
            }
            ("first" | "last" | "any_value", [one]) => {
                (format!("_{name}({}{order})", one.sql), one.of.clone())
            }
            ("avg" | "mean", [one]) if matches!(one.of, Type::Integer | Type::Double) => {
                (format!("avg({})", one.sql), Type::Double)
            }
            ("min" | "max", [one]) if one.of.sorts() => {
                (format!("{name}({})", one.sql), one.of.clone())
            }
            ("bool_and", [one]) if one.of == Type::Boolean => {
                (format!("min({})", one.sql), Type::Boolean)
            }
            ("bool_or", [one]) if one.of == Type::Boolean => {
                (format!("max({})", one.sql), Type::Boolean)
            }
            ("count_if", [one]) if one.of == Type::Boolean => {
                (format!("count_if({})", one.sql), Type::Integer)
            }
            ("list" | "array_agg", [one]) => (
                format!("_list({}{order})", casts::json(one)?),
                Type::List(Box::new(one.of.clone())),
            ),
            ("string_agg" | "group_concat" | "listagg", [one, rest @ ..]) if rest.len() < 2 => {
                let one = casts::text(one.clone())?;
                // It is the same for all rows.
                if !call.args[1..].iter().all(|separator| matches!(separator, Expr::Text(_))) {
                    return Err(Untranslated);
                }
                let separator = rest.first().map_or("','", |separator| separator.sql.as_str());
                (format!("string_agg({}, {separator}{order})", one.sql), Type::Text)
            }
            ("arg_max" | "arg_min" | "max_by" | "min_by", [one, by]) if by.of.sorts() => {
                (format!("{name}({}, {})", one.sql, by.sql), one.of.clone())
            }
            ("mode", [one]) if one.of.sorts() => (format!("mode({})", one.sql), one.of.clone()),
            ("median", [one]) if matches!(one.of, Type::Integer | Type::Double) => {
                (format!("median({})", one.sql), Type::Double)
            }
            ("quantile_cont", [one, at])
                if matches!(one.of, Type::Integer | Type::Double) && at.of.is_number() =>
            {
                (format!("quantile_cont({}, {})", one.sql, at.sql), Type::Double)
            }
            _ => return Err(Untranslated),
        };
        let filter = match &call.filter {
            Some(filter) => {
                let filter = inside(self, filter)?;
                if filter.of != Type::Boolean {
                    return Err(Untranslated);
                }
                format!(" FILTER (WHERE {})", filter.sql)
            }
            None => String::new(),
        };
        let over = match &call.over {
            Some(over) => {
                // Ours are no window functions.
                if !matches!(name, "count" | "sum" | "avg" | "mean" | "min" | "max")
                    || call.distinct
                {
                    return Err(Untranslated);
                }
                self.over(over, scope)?
            }
            None => String::new(),
        };
        Ok(Typed::new(format!("{sql}{filter}{over}"), of))
    }

    fn over(&mut self, over: &Over, scope: &Scope<'_>) -> Result<String> {
        let mut inside = Vec::new();
        let by = |lower: &mut Self, expr: &Expr| {
            let typed = lower.expr(expr, scope)?;
            if typed.of.sorts() { Ok(typed.sql) } else { Err(Untranslated) }
        };
        if !over.partition.is_empty() {
            let all =
                over.partition.iter().map(|expr| by(self, expr)).collect::<Result<Vec<_>>>()?;
            inside.push(format!("PARTITION BY {}", all.join(", ")));
        }
        if !over.order.is_empty() {
            let term = |sort: &Sort| Ok(sorted(&by(self, &sort.by)?, sort));
            let all = over.order.iter().map(term).collect::<Result<Vec<_>>>()?;
            inside.push(format!("ORDER BY {}", all.join(", ")));
        }
        Ok(format!(" OVER ({}{})", inside.join(" "), over.frame))
    }

    /// `list_transform` and `list_filter` are a list made of another; so is what sums one up.
    fn of_lambda(&mut self, call: &Call, scope: &Scope<'_>) -> Result<Option<Typed>> {
        let [list, Expr::Lambda(name, what)] = &call.args[..] else { return Ok(None) };
        let list = self.expr(list, scope)?;
        match call.name.as_str() {
            "list_transform" | "array_transform" | "list_apply" | "array_apply" => {
                self.comprehension(what, name, &list, None, scope).map(Some)
            }
            "list_filter" | "array_filter" => {
                let item = Expr::Name(vec![name.clone()]);
                self.comprehension(&item, name, &list, Some(what), scope).map(Some)
            }
            _ => Err(Untranslated),
        }
    }

    fn window(
        &mut self,
        call: &Call,
        args: Vec<Typed>,
        over: &Over,
        scope: &Scope<'_>,
    ) -> Result<Typed> {
        let name = call.name.as_str();
        if !WINDOWS.contains(&name) {
            return Err(Untranslated);
        }
        let of = match (name, &args[..]) {
            ("row_number" | "rank" | "dense_rank", []) => Type::Integer,
            ("percent_rank" | "cume_dist", []) => Type::Double,
            ("ntile", [count]) if count.of == Type::Integer => Type::Integer,
            ("lag" | "lead" | "first_value" | "last_value", [one]) => one.of.clone(),
            ("lag" | "lead" | "nth_value", [one, at]) if at.of == Type::Integer => one.of.clone(),
            ("lag" | "lead", [one, at, other]) if at.of == Type::Integer && other.of == one.of => {
                one.of.clone()
            }
            _ => return Err(Untranslated),
        };
        let args = args.iter().map(|arg| arg.sql.as_str()).collect::<Vec<_>>().join(", ");
        Ok(Typed::new(format!("{name}({args}){}", self.over(over, scope)?), of))
    }
}
