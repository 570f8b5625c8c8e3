//! Dates and time stamps, as texts: `2026-03-01`, `2026-03-01 09:00:00`. An interval is `months days microseconds`.

use jiff::civil::Date;
use jiff::{Span, ToSpan as _};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value;
use rusqlite::{Connection, Result};

use super::{Function, integer, refuse, text};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

pub(super) fn register(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    let functions: &[(&str, i32, Function)] = &[
        ("_add", 3, add),
        ("_since", 2, since),
        ("_days", 2, days),
        ("_epoch", 1, epoch),
        ("_seconds", 1, seconds),
        ("_milliseconds", 1, milliseconds),
        ("_last_day", 1, last_day),
        ("_make_date", 3, make_date),
        ("_truncated", 2, truncated),
        ("_part", 2, part),
        ("_boundaries", 3, boundaries),
        ("_formatted", 2, formatted),
    ];
    super::register_all(connection, flags, functions)
}

/// A moment on no particular clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time {
    date: Date,
    /// Of the day, in microseconds.
    of_day: i64,
}

impl Time {
    /// `YYYY-MM-DD`, with `hh:mm[:ss[.ffffff]]` and `Z` after a blank or a `T`. All else is not read.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let number = |text: &str, from: usize, to: usize| {
            let digits = text.get(from..to)?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
        };
        if date.as_bytes()[4] != b'-' || date.as_bytes()[7] != b'-' {
            return None;
        }
        let year = i16::try_from(number(date, 0, 4)?).ok().filter(|year| *year > 0)?;
        let small = |number: i64| i8::try_from(number).ok();
        let date =
            Date::new(year, small(number(date, 5, 7)?)?, small(number(date, 8, 10)?)?).ok()?;
        if rest.is_empty() {
            return Some(Self { date, of_day: 0 });
        }
        let clock = rest.strip_prefix(['T', ' '])?;
        let zoned = clock.strip_suffix('Z');
        let clock = zoned.unwrap_or(clock);
        let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let (hour, minute) = (number(whole, 0, 2)?, number(whole, 3, 5)?);
        let second = match whole.len() {
            5 if fraction.is_empty() && zoned.is_none() => 0,
            8 if whole.as_bytes()[5] == b':' => number(whole, 6, 8)?,
            _ => return None,
        };
        if whole.as_bytes()[2] != b':' || clock.ends_with('.') || fraction.len() > 6 {
            return None;
        }
        let micros =
            if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<6}"), 0, 6)? };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        Some(Self { date, of_day: hour * HOUR + minute * MINUTE + second * SECOND + micros })
    }

    /// `2026-03-01`.
    pub(super) fn date_text(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.date.year(), self.date.month(), self.date.day())
    }

    /// `2026-03-01 09:00:00`, with a fraction if there is one.
    pub(super) fn text(&self) -> String {
        let (hour, minute, second) = self.clock();
        let mut out = format!("{} {hour:02}:{minute:02}:{second:02}", self.date_text());
        let micros = self.of_day % SECOND;
        if micros > 0 {
            out.push_str(format!(".{micros:06}").trim_end_matches('0'));
        }
        out
    }

    fn clock(&self) -> (i64, i64, i64) {
        (self.of_day / HOUR, self.of_day / MINUTE % 60, self.of_day / SECOND % 60)
    }

    /// Days since 1970.
    fn day(&self) -> i64 {
        let first = Date::constant(1970, 1, 1);
        // In days alone it is no more than some millions.
        first.until(self.date).map_or(0, |span| i64::from(span.get_days()))
    }

    /// Microseconds since 1970.
    fn micros(&self) -> i64 {
        self.day() * DAY + self.of_day
    }

    fn month(&self) -> i64 {
        i64::from(self.date.year()) * 12 + i64::from(self.date.month()) - 1
    }

    fn plus(&self, months: i64, days: i64, micros: i64) -> Option<Self> {
        let moved = Span::new()
            .try_months(months)
            .ok()
            .and_then(|span| self.date.checked_add(span).ok())?;
        let total = self.of_day.checked_add(micros)?;
        let days = days.checked_add(total.div_euclid(DAY))?;
        let date = Span::new().try_days(days).ok().and_then(|span| moved.checked_add(span).ok())?;
        (date.year() > 0).then_some(Self { date, of_day: total.rem_euclid(DAY) })
    }
}

/// A time that was made here.
fn time(context: &Context<'_>, at: usize) -> Result<Option<Time>> {
    let Some(text) = text(context, at)? else { return Ok(None) };
    match Time::read(text) {
        Some(time) => Ok(Some(time)),
        None => refuse(format!("argument {} must be a date or a time stamp", at + 1)),
    }
}

fn interval(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = text.split(' ').map(|part| part.parse::<i64>().ok());
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(months), Some(days), Some(micros), None) => Some((months?, days?, micros?)),
        _ => None,
    }
}

fn add(context: &Context<'_>) -> Result<Value> {
    let (Some(time), Some(text)) = (time(context, 0)?, text(context, 1)?) else {
        return Ok(Value::Null);
    };
    let sign = context.get::<i64>(2)?;
    let sum = interval(text).and_then(|(months, days, micros)| {
        time.plus(months.checked_mul(sign)?, days.checked_mul(sign)?, micros.checked_mul(sign)?)
    });
    match sum {
        Some(sum) => Ok(Value::Text(sum.text())),
        None => refuse("the time stamp is out of range"),
    }
}

fn since(context: &Context<'_>) -> Result<Value> {
    let (Some(a), Some(b)) = (time(context, 0)?, time(context, 1)?) else { return Ok(Value::Null) };
    let micros = a.micros() - b.micros();
    Ok(Value::Text(format!("0 {} {}", micros / DAY, micros % DAY)))
}

fn days(context: &Context<'_>) -> Result<Value> {
    let (Some(a), Some(b)) = (time(context, 0)?, time(context, 1)?) else { return Ok(Value::Null) };
    Ok(Value::Integer(a.day() - b.day()))
}

#[expect(clippy::cast_precision_loss, reason = "a double is what DuckDB gives")]
fn epoch(context: &Context<'_>) -> Result<Value> {
    let Some(time) = time(context, 0)? else { return Ok(Value::Null) };
    Ok(Value::Real(time.micros() as f64 / SECOND as f64))
}

#[expect(clippy::cast_precision_loss, reason = "a double is what DuckDB gives")]
fn seconds(context: &Context<'_>) -> Result<Value> {
    let Some(text) = text(context, 0)? else { return Ok(Value::Null) };
    match interval(text) {
        Some((0, days, micros)) => {
            // More microseconds than 64 bits hold, of some million years.
            let micros = i128::from(days) * i128::from(DAY) + i128::from(micros);
            Ok(Value::Real(micros as f64 / SECOND as f64))
        }
        _ => refuse("an interval of months has no length in seconds"),
    }
}

fn milliseconds(context: &Context<'_>) -> Result<Value> {
    let Some(time) = time(context, 0)? else { return Ok(Value::Null) };
    Ok(Value::Integer(time.micros() / 1000))
}

/// Of the month.
fn last_day(context: &Context<'_>) -> Result<Value> {
    let Some(time) = time(context, 0)? else { return Ok(Value::Null) };
    Ok(Value::Text(Time { date: time.date.last_of_month(), of_day: 0 }.date_text()))
}

fn make_date(context: &Context<'_>) -> Result<Value> {
    let (Some(year), Some(month), Some(day)) =
        (integer(context, 0)?, integer(context, 1)?, integer(context, 2)?)
    else {
        return Ok(Value::Null);
    };
    match Time::read(&format!("{year:04}-{month:02}-{day:02}")) {
        Some(time) => Ok(Value::Text(time.date_text())),
        None => refuse("there is no such date"),
    }
}

fn truncated(context: &Context<'_>) -> Result<Value> {
    let (Some(unit), Some(time)) = (text(context, 0)?, time(context, 1)?) else {
        return Ok(Value::Null);
    };
    let (year, month) = (time.date.year(), time.date.month());
    let date = match unit.to_ascii_lowercase().as_str() {
        "year" => Date::new(year, 1, 1),
        "quarter" => Date::new(year, (month - 1) / 3 * 3 + 1, 1),
        "month" => Date::new(year, month, 1),
        "week" => {
            time.date.checked_sub(i64::from(time.date.weekday().to_monday_zero_offset()).days())
        }
        _ => Ok(time.date),
    };
    let Ok(date) = date else { return refuse("the time stamp is out of range") };
    let step = match unit.to_ascii_lowercase().as_str() {
        "hour" => HOUR,
        "minute" => MINUTE,
        "second" => SECOND,
        _ => DAY,
    };
    Ok(Value::Text(Time { date, of_day: time.of_day / step * step }.text()))
}

fn part(context: &Context<'_>) -> Result<Value> {
    let (Some(unit), Some(time)) = (text(context, 0)?, time(context, 1)?) else {
        return Ok(Value::Null);
    };
    let (hour, minute, second) = time.clock();
    let weekday = time.date.weekday();
    Ok(Value::Integer(match unit.to_ascii_lowercase().as_str() {
        "year" => i64::from(time.date.year()),
        "quarter" => i64::from((time.date.month() - 1) / 3 + 1),
        "month" => i64::from(time.date.month()),
        "week" => i64::from(time.date.iso_week_date().week()),
        "day" => i64::from(time.date.day()),
        "hour" => hour,
        "minute" => minute,
        "second" => second,
        "dayofweek" | "dow" => i64::from(weekday.to_sunday_zero_offset()),
        "isodow" => i64::from(weekday.to_monday_one_offset()),
        "dayofyear" | "doy" => i64::from(time.date.day_of_year()),
        _ => return refuse(format!("`{unit}` is no part of a time that is known here")),
    }))
}

/// How many beginnings of a unit lie between two times.
fn boundaries(context: &Context<'_>) -> Result<Value> {
    let (Some(unit), Some(a), Some(b)) = (text(context, 0)?, time(context, 1)?, time(context, 2)?)
    else {
        return Ok(Value::Null);
    };
    let of = |time: &Time| {
        Some(match unit.to_ascii_lowercase().as_str() {
            "year" => i64::from(time.date.year()),
            "quarter" => time.month().div_euclid(3),
            "month" => time.month(),
            "day" => time.day(),
            "hour" => time.micros().div_euclid(HOUR),
            "minute" => time.micros().div_euclid(MINUTE),
            "second" => time.micros().div_euclid(SECOND),
            "millisecond" => time.micros().div_euclid(1000),
            _ => return None,
        })
    };
    match (of(&a), of(&b)) {
        (Some(a), Some(b)) => Ok(Value::Integer(b - a)),
        _ => refuse(format!("`{unit}` is no part of a time that is known here")),
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// `strftime`.
fn formatted(context: &Context<'_>) -> Result<Value> {
    let (Some(time), Some(format)) = (time(context, 0)?, text(context, 1)?) else {
        return Ok(Value::Null);
    };
    let (hour, minute, second) = time.clock();
    let month = MONTHS[usize::try_from(time.date.month() - 1).unwrap_or(0)];
    let day = DAYS[usize::try_from(time.date.weekday().to_monday_zero_offset()).unwrap_or(0)];
    let twelve = (hour + 11) % 12 + 1;
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let code = rest[at + 1..].chars().next();
        rest = &rest[at + 1 + code.map_or(0, char::len_utf8)..];
        out.push_str(&match code {
            Some('Y') => format!("{:04}", time.date.year()),
            Some('y') => format!("{:02}", time.date.year() % 100),
            Some('m') => format!("{:02}", time.date.month()),
            Some('d') => format!("{:02}", time.date.day()),
            Some('H') => format!("{hour:02}"),
            Some('I') => format!("{twelve:02}"),
            Some('M') => format!("{minute:02}"),
            Some('S') => format!("{second:02}"),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('f') => format!("{:06}", time.of_day % SECOND),
            Some('j') => format!("{:03}", time.date.day_of_year()),
            Some('A') => day.to_owned(),
            Some('a') => day[..3].to_owned(),
            Some('B') => month.to_owned(),
            Some('b') => month[..3].to_owned(),
            Some('%') => "%".to_owned(),
            _ => return refuse("the format has a `%` code that is not known here"),
        });
    }
    out.push_str(rest);
    Ok(Value::Text(out))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_that_is_read_reads_back(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-6][0-9](\\.[0-9é]{0,7})?)?Z?)?|[0-9é:.TZ -]{0,27}",
        ) {
            if let Some(time) = Time::read(&text) {
                prop_assert_eq!(Time::read(&time.text()), Some(time));
                prop_assert!(text.starts_with(&time.date_text()), "{}", text);
            }
        }

        #[test]
        fn what_is_added_can_be_taken_away(
            days in -700_000..2_900_000_i64,
            more in any::<i32>(),
            micros in -(1_i64 << 60)..1 << 60,
        ) {
            let start = Time { date: Date::constant(2000, 1, 1), of_day: 0 };
            let Some(time) = start.plus(0, days, 0) else { return Ok(()) };
            if let Some(later) = time.plus(0, more.into(), micros) {
                prop_assert_eq!(later.plus(0, -i64::from(more), -micros), Some(time));
                prop_assert_eq!(later.micros() - time.micros(), i64::from(more) * DAY + micros);
            }
        }
    }
}
