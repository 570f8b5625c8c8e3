//! Aggregates that users of DuckDB write.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::{compare, owned, refuse};

pub(super) fn register(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    for (name, wanted) in [
        ("arg_max", std::cmp::Ordering::Greater),
        ("max_by", std::cmp::Ordering::Greater),
        ("arg_min", std::cmp::Ordering::Less),
        ("min_by", std::cmp::Ordering::Less),
    ] {
        connection.create_aggregate_function(name, 2, flags, ArgExtreme { wanted })?;
    }
    connection.create_aggregate_function("mode", 1, flags, Mode)?;
    connection.create_aggregate_function("median", 1, flags, Quantile)?;
    connection.create_aggregate_function("quantile_cont", 2, flags, Quantile)?;
    connection.create_aggregate_function("count_if", 1, flags, CountIf)
}

/// Makes known what only a translated statement calls.
pub(super) fn register_translated(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    for (name, which) in
        [("_first", Which::First), ("_last", Which::Last), ("_any_value", Which::FirstThatIs)]
    {
        connection.create_aggregate_function(name, 1, flags, which)?;
    }
    connection.create_aggregate_function("_sum", 1, flags, Sum { mean: false })?;
    connection.create_aggregate_function("_avg", 1, flags, Sum { mean: true })?;
    connection.create_aggregate_function("_only", 1, flags, Only)
}

/// Doubles, or what they are on average, added one after the other: SQLite's own sum makes up for what is lost by that.
struct Sum {
    mean: bool,
}

impl Aggregate<(f64, f64), Option<f64>> for Sum {
    fn init(&self, _: &mut Context<'_>) -> Result<(f64, f64)> {
        Ok((0.0, 0.0))
    }

    fn step(&self, context: &mut Context<'_>, (sum, count): &mut (f64, f64)) -> Result<()> {
        if let Some(number) = context.get::<Option<f64>>(0)? {
            *sum += number;
            *count += 1.0;
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, state: Option<(f64, f64)>) -> Result<Option<f64>> {
        match state {
            Some((sum, _)) if sum.is_nan() => refuse("the sum is no number (NaN)"),
            Some((sum, count)) if count > 0.0 => {
                Ok(Some(if self.mean { sum / count } else { sum }))
            }
            _ => Ok(None),
        }
    }
}

/// The value of the only row there may be; null if there is none.
struct Only;

impl Aggregate<Option<Value>, Value> for Only {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<Value>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, value: &mut Option<Value>) -> Result<()> {
        if value.is_some() {
            return refuse("a subquery that stands for one value gives more than one row");
        }
        *value = Some(owned(context.get_raw(0)));
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, value: Option<Option<Value>>) -> Result<Value> {
        Ok(value.flatten().unwrap_or(Value::Null))
    }
}

/// One of the values, by their order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    First,
    Last,
    /// The first that is not null.
    FirstThatIs,
}

impl Aggregate<Option<Value>, Value> for Which {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<Value>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, value: &mut Option<Value>) -> Result<()> {
        let takes = match self {
            Self::First => value.is_none(),
            Self::Last => true,
            Self::FirstThatIs => matches!(value, None | Some(Value::Null)),
        };
        if takes {
            *value = Some(owned(context.get_raw(0)));
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, value: Option<Option<Value>>) -> Result<Value> {
        Ok(value.flatten().unwrap_or(Value::Null))
    }
}

/// The first argument where the second is extreme; rows with a null are left out.
struct ArgExtreme {
    wanted: std::cmp::Ordering,
}

impl Aggregate<Option<(Value, Value)>, Value> for ArgExtreme {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<(Value, Value)>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, best: &mut Option<(Value, Value)>) -> Result<()> {
        let (value, by) = (context.get_raw(0), context.get_raw(1));
        if matches!(value, ValueRef::Null) || matches!(by, ValueRef::Null) {
            return Ok(());
        }
        let better = match best {
            None => true,
            Some((_, so_far)) => match compare(by, (&*so_far).into()) {
                Some(order) => order == self.wanted,
                None => return refuse("values of one type are needed: numbers, or texts"),
            },
        };
        if better {
            *best = Some((owned(value), owned(by)));
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, best: Option<Option<(Value, Value)>>) -> Result<Value> {
        Ok(best.flatten().map_or(Value::Null, |(value, _)| value))
    }
}

/// The value that occurs most; the first of them if several do.
struct Mode;

impl Aggregate<Vec<(Value, usize)>, Value> for Mode {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<(Value, usize)>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, counts: &mut Vec<(Value, usize)>) -> Result<()> {
        let value = owned(context.get_raw(0));
        if value == Value::Null {
            return Ok(());
        }
        match counts.iter().position(|(other, _)| *other == value) {
            Some(at) => counts[at].1 += 1,
            // A look at every value that was met before: of columns with few of them, as a mode is asked of.
            None if counts.len() < 10_000 => counts.push((value, 1)),
            None => return refuse("mode: there are more than 10000 different values"),
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, counts: Option<Vec<(Value, usize)>>) -> Result<Value> {
        let mut best: Option<(Value, usize)> = None;
        for (value, count) in counts.unwrap_or_default() {
            if best.as_ref().is_none_or(|(_, most)| count > *most) {
                best = Some((value, count));
            }
        }
        Ok(best.map_or(Value::Null, |(value, _)| value))
    }
}

/// A quantile of numbers, between two of them by how near it is to each. The median is the one at a half.
struct Quantile;

/// The numbers, and the quantile that was asked for.
type Numbers = (Vec<f64>, f64);

impl Aggregate<Numbers, Option<f64>> for Quantile {
    fn init(&self, _: &mut Context<'_>) -> Result<Numbers> {
        Ok((Vec::new(), 0.5))
    }

    fn step(&self, context: &mut Context<'_>, (numbers, at): &mut Numbers) -> Result<()> {
        if context.len() > 1 {
            match context.get_raw(1) {
                ValueRef::Real(number) if (0.0..=1.0).contains(&number) => *at = number,
                #[expect(clippy::cast_precision_loss, reason = "0 or 1")]
                ValueRef::Integer(number) if (0..=1).contains(&number) => *at = number as f64,
                _ => return refuse("a quantile is a number from 0 to 1"),
            }
        }
        match context.get_raw(0) {
            ValueRef::Null => {}
            ValueRef::Real(number) => numbers.push(number),
            #[expect(
                clippy::cast_precision_loss,
                reason = "the result is a double, as DuckDB's is"
            )]
            ValueRef::Integer(number) => numbers.push(number as f64),
            ValueRef::Text(_) | ValueRef::Blob(_) => return refuse("numbers are needed"),
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, numbers: Option<Numbers>) -> Result<Option<f64>> {
        let Some((mut numbers, at)) = numbers.filter(|(numbers, _)| !numbers.is_empty()) else {
            return Ok(None);
        };
        numbers.sort_by(f64::total_cmp);
        #[expect(clippy::cast_precision_loss, reason = "a place in a list that fits memory")]
        let place = at * (numbers.len() - 1) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the length"
        )]
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        let share = place - place.floor();
        Ok(Some(numbers[below] + (numbers[above] - numbers[below]) * share))
    }
}

/// How often a condition holds; null if it never was anything but null.
struct CountIf;

impl Aggregate<Option<i64>, Option<i64>> for CountIf {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<i64>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, count: &mut Option<i64>) -> Result<()> {
        match context.get_raw(0) {
            ValueRef::Null => {}
            ValueRef::Integer(holds) => {
                *count = Some(count.unwrap_or(0) + i64::from(holds != 0));
            }
            ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
                return refuse("a condition is needed");
            }
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, count: Option<Option<i64>>) -> Result<Option<i64>> {
        Ok(count.flatten())
    }
}
