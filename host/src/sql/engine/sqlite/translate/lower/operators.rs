//! Operators: what they take, and as what.

use super::super::tree::{Expr, Written};
use super::super::types::{Scope, Type, Typed, literal};
use super::super::{Result, Untranslated};
use super::expressions::{is_arrow, same_type};
use super::functions::is_narrow;
use super::{Lower, casts};

impl Lower<'_> {
    pub(super) fn binary(
        &mut self,
        operator: &str,
        left: &Expr,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Result<Typed> {
        let sql = |left: &Typed, right: &Typed| format!("({} {operator} {})", left.sql, right.sql);
        match operator {
            "AND" | "OR" => {
                let (left, right) = (self.condition(left, scope)?, self.condition(right, scope)?);
                Ok(Typed::new(format!("({left} {operator} {right})"), Type::Boolean))
            }
            "=" | "==" | "<>" | "!=" | "<" | "<=" | ">" | ">=" => {
                if is_arrow(left) || is_arrow(right) {
                    return Err(Untranslated);
                }
                let (left, right) = self.pair(left, right, scope)?;
                Ok(Typed::new(sql(&left, &right), Type::Boolean))
            }
            "||" => {
                let (left, right) = (self.expr(left, scope)?, self.expr(right, scope)?);
                match (&left.of, &right.of) {
                    (Type::List(a), Type::List(b)) if a == b => {
                        Ok(Typed::new(format!("_joined({}, {})", left.sql, right.sql), left.of))
                    }
                    (Type::Json | Type::List(_), _) | (_, Type::Json | Type::List(_)) => {
                        Err(Untranslated)
                    }
                    _ => {
                        let (left, right) = (casts::text(left)?, casts::text(right)?);
                        Ok(Typed::new(sql(&left, &right), Type::Text))
                    }
                }
            }
            "->" | "->>" => {
                let of = casts::as_json(self.expr(left, scope)?)?;
                let path = match right {
                    Expr::Text(path) => literal(path),
                    Expr::Number(at) if at.parse::<u32>().is_ok() => at.clone(),
                    _ => return Err(Untranslated),
                };
                Ok(match operator {
                    "->" => Typed::new(format!("_path({}, {path})", of.sql), Type::Json),
                    _ => Typed::new(format!("_path_text({}, {path})", of.sql), Type::Text),
                })
            }
            _ => {
                let narrow = is_narrow(right);
                let (left, right) = (self.expr(left, scope)?, self.expr(right, scope)?);
                if left.of == Type::Date && right.of == Type::Integer && !narrow {
                    return Err(Untranslated);
                }
                arithmetic(operator, left, right)
            }
        }
    }

    /// Two values that can be compared, as SQLite compares them.
    pub(super) fn pair(
        &mut self,
        left: &Expr,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Result<(Typed, Typed)> {
        let (a, b) = (self.expr(left, scope)?, self.expr(right, scope)?);
        let a = literal_as(left, a, &b.of)?;
        let b = literal_as(right, b, &a.of)?;
        let (a, b) = match (&a.of, &b.of) {
            (Type::Date, Type::Timestamp) => (casts::widened(a, &Type::Timestamp), b),
            (Type::Timestamp, Type::Date) => (a, casts::widened(b, &Type::Timestamp)),
            (Type::Integer, Type::Double) | (Type::Double, Type::Integer) => {
                (casts::widened(a, &Type::Double), casts::widened(b, &Type::Double))
            }
            (Type::Integer | Type::Decimal | Type::Double, Type::Decimal)
            | (Type::Decimal, Type::Integer | Type::Double) => (a, b),
            (x, y) if x == y && x.sorts() => (a, b),
            (Type::Null, of) | (of, Type::Null) if of.sorts() => (a, b),
            _ => return Err(Untranslated),
        };
        Ok((a, b))
    }

    pub(super) fn case(
        &mut self,
        of: Option<&Expr>,
        whens: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Typed> {
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        for (when, then) in whens {
            conditions.push(match of {
                Some(of) => {
                    let (value, when) = self.pair(of, when, scope)?;
                    format!("({} = {})", value.sql, when.sql)
                }
                None => self.condition(when, scope)?,
            });
            values.push(self.expr(then, scope)?);
        }
        values.push(match otherwise {
            Some(otherwise) => self.expr(otherwise, scope)?,
            None => Typed::new("NULL", Type::Null),
        });
        let (values, of) = same_type(values)?;
        let mut sql = "CASE".to_owned();
        for (condition, value) in conditions.iter().zip(&values) {
            sql.push_str(&format!(" WHEN {condition} THEN {}", value.sql));
        }
        sql.push_str(&format!(" ELSE {} END", values[values.len() - 1].sql));
        Ok(Typed::new(sql, of))
    }
}

/// A text that was written out takes the type of what it stands beside.
fn literal_as(expr: &Expr, typed: Typed, beside: &Type) -> Result<Typed> {
    let Expr::Text(text) = expr else {
        return Ok(typed);
    };
    match beside {
        Type::Integer => {
            text.parse::<i64>().map_err(|_| Untranslated)?;
            Ok(Typed::new(format!("({text})"), Type::Integer))
        }
        Type::Double => {
            let number =
                text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or(Untranslated)?;
            Ok(Typed::new(format!("({})", json_text::float_text(number)), Type::Double))
        }
        Type::Date => casts::cast(typed, Written::Date, false),
        Type::Timestamp => casts::cast(typed, Written::Timestamp, false),
        _ => Ok(typed),
    }
}

fn arithmetic(operator: &str, left: Typed, right: Typed) -> Result<Typed> {
    use Type::{Date, Decimal, Double, Integer, Interval, Timestamp};
    let call = |name: &str| format!("{name}({}, {})", left.sql, right.sql);
    let name = match operator {
        "+" => "_plus",
        "-" => "_minus",
        "*" => "_times",
        "/" => "_quotient",
        "//" => "_whole_quotient",
        _ => "_remainder",
    };
    Ok(match (operator, &left.of, &right.of) {
        ("+" | "-" | "*" | "//" | "%", Integer, Integer) => Typed::new(call(name), Integer),
        ("+" | "-" | "*", Double, Integer | Decimal | Double)
        | ("+" | "-" | "*", Integer | Decimal, Double)
        | ("/", Integer | Double, Integer | Double) => Typed::new(call(name), Double),
        ("+", Date | Timestamp, Interval) => added(left, &right.sql, 1),
        ("+", Interval, Date | Timestamp) => added(right, &left.sql, 1),
        ("-", Date | Timestamp, Interval) => added(left, &right.sql, -1),
        ("+" | "-", Date, Integer) => {
            let time = casts::widened(left, &Timestamp).sql;
            let sign = if operator == "+" { 1 } else { -1 };
            Typed::new(
                format!("substr(_add({time}, '0 ' || {} || ' 0', {sign}), 1, 10)", right.sql),
                Date,
            )
        }
        ("-", Timestamp, Timestamp) => {
            Typed::new(format!("_since({}, {})", left.sql, right.sql), Interval)
        }
        ("-", Date, Date) => Typed::new(format!("_days({}, {})", left.sql, right.sql), Integer),
        _ => return Err(Untranslated),
    })
}

fn added(time: Typed, interval: &str, sign: i8) -> Typed {
    let time = casts::widened(time, &Type::Timestamp);
    Typed::new(format!("_add({}, {interval}, {sign})", time.sql), Type::Timestamp)
}
