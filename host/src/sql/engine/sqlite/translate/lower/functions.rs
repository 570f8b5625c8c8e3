//! Functions of values.

use super::super::tree::{Expr, Written};
use super::super::types::{Type, Typed};
use super::super::{Result, Untranslated};
use super::expressions::{item_of, items, same_type};
use super::{Lower, casts};

/// What a function takes for a time: its parts.
const PARTS: &[&str] = &[
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "week",
    "quarter",
    "dayofweek",
    "isodow",
    "dayofyear",
    "dow",
    "doy",
];

/// What is trimmed where nothing else is said: the spaces of Unicode, no tabs and no ends of lines.
const BLANKS: &str = " \u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{202f}\u{205f}\u{3000}";

impl Lower<'_> {
    /// A function of values.
    pub(super) fn function(
        &mut self,
        name: &str,
        exprs: &[Expr],
        mut args: Vec<Typed>,
    ) -> Result<Typed> {
        let is_json = name.starts_with("json_") && !matches!(name, "json_object" | "json_array");
        if let (true, Some(first)) = (is_json, args.first_mut()) {
            *first = casts::as_json(first.clone())?;
        }
        use Type::{Boolean, Date, Double, Integer, Interval, Json, List, Text, Timestamp};
        let sql = |name: &str, args: &[Typed]| {
            format!(
                "{name}({})",
                args.iter().map(|arg| arg.sql.as_str()).collect::<Vec<_>>().join(", ")
            )
        };
        let types = args.iter().map(|arg| &arg.of).collect::<Vec<_>>();
        let list_of = |of: &Type| List(Box::new(of.clone()));
        // A function of texts gives null for a null, as all of ours do.
        let part = |at: usize| match exprs.get(at) {
            Some(Expr::Text(part)) => Ok(part.to_ascii_lowercase()),
            _ => Err(Untranslated),
        };
        Ok(match (name, &types[..]) {
            ("lower" | "lcase", [Text]) => Typed::new(sql("_lower", &args), Text),
            ("upper" | "ucase", [Text]) => Typed::new(sql("_upper", &args), Text),
            ("length" | "len", [Text]) => Typed::new(sql("length", &args), Integer),
            ("length" | "len" | "array_length", [List(_)]) => {
                Typed::new(sql("_length", &args), Integer)
            }
            ("trim" | "ltrim" | "rtrim", [Text]) => {
                Typed::new(format!("{name}({}, '{BLANKS}')", args[0].sql), Text)
            }
            ("trim" | "ltrim" | "rtrim", [Text, Text]) => Typed::new(sql(name, &args), Text),
            ("replace", [Text, Text, Text]) => Typed::new(sql("replace", &args), Text),
            ("starts_with" | "ends_with" | "prefix" | "suffix" | "contains", [Text, Text]) => {
                Typed::new(sql(name, &args), Boolean)
            }
            ("substr" | "substring", [Text, Integer] | [Text, Integer, Integer]) => {
                let whole = |at: usize| matches!(&exprs[at], Expr::Number(number) if number != "0");
                if !whole(1) || exprs.len() > 2 && !whole(2) {
                    return Err(Untranslated);
                }
                Typed::new(sql("substr", &args), Text)
            }
            ("left", [Text, Integer]) if matches!(exprs[1], Expr::Number(_)) => {
                Typed::new(format!("substr({}, 1, {})", args[0].sql, args[1].sql), Text)
            }
            ("concat", [_, ..]) => {
                let args = args.into_iter().map(casts::text).collect::<Result<Vec<_>>>()?;
                Typed::new(sql("concat", &args), Text)
            }
            ("concat_ws", [Text, _, ..]) => {
                let args = args.into_iter().map(casts::text).collect::<Result<Vec<_>>>()?;
                Typed::new(sql("concat_ws", &args), Text)
            }
            ("lpad" | "rpad", [Text, Integer, Text]) if is_narrow(&exprs[1]) => {
                Typed::new(sql(name, &args), Text)
            }
            ("repeat", [Text, Integer]) => Typed::new(sql(name, &args), Text),
            ("split_part", [Text, Text, Integer]) => Typed::new(sql(name, &args), Text),
            ("string_split" | "str_split" | "split" | "string_to_array", [Text, Text]) => {
                Typed::new(sql("_split", &args), list_of(&Text))
            }
            ("strpos" | "instr" | "position", [Text, Text]) => {
                Typed::new(sql("instr", &args), Integer)
            }
            ("regexp_matches" | "regexp_full_match", [Text, Text]) => {
                Typed::new(sql(name, &args), Boolean)
            }
            ("regexp_extract", [Text, Text] | [Text, Text, Integer])
                if exprs[2..].iter().all(is_narrow) =>
            {
                Typed::new(sql(name, &args), Text)
            }
            ("regexp_replace", [Text, Text, Text] | [Text, Text, Text, Text]) => {
                Typed::new(sql(name, &args), Text)
            }
            ("abs", [of @ (Integer | Double)]) => Typed::new(sql("abs", &args), (*of).clone()),
            ("round", [Double] | [Double, Integer]) if exprs[1..].iter().all(is_narrow) => {
                Typed::new(sql("_round", &args), Double)
            }
            ("coalesce" | "ifnull", [_, ..]) => {
                let (mut args, of) = same_type(args)?;
                // One alone would be no call of it.
                args.push(Typed::new("NULL", of.clone()));
                Typed::new(sql("coalesce", &args), of)
            }
            ("nullif", [a, b]) if a == b && a.sorts() => {
                Typed::new(sql("nullif", &args), (*a).clone())
            }
            ("if" | "iif", [Boolean, _, _]) => {
                let condition = args[0].sql.clone();
                let (values, of) = same_type(args[1..].to_vec())?;
                Typed::new(
                    format!(
                        "CASE WHEN {condition} THEN {} ELSE {} END",
                        values[0].sql, values[1].sql
                    ),
                    of,
                )
            }
            ("greatest" | "least", [_, _, ..]) => {
                let (args, of) = same_type(args)?;
                if !of.sorts() {
                    return Err(Untranslated);
                }
                Typed::new(sql(name, &args), of)
            }
            ("epoch", [Timestamp]) => Typed::new(sql("_epoch", &args), Double),
            ("epoch", [Interval]) => Typed::new(sql("_seconds", &args), Double),
            ("date_trunc" | "datetrunc", [Text, Timestamp | Date]) => {
                let unit = part(0)?;
                if !["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
                    .contains(&unit.as_str())
                {
                    return Err(Untranslated);
                }
                Typed::new(sql("_truncated", &args), Timestamp)
            }
            ("date_part" | "datepart", [Text, Timestamp | Date])
                if PARTS.contains(&part(0)?.as_str()) =>
            {
                Typed::new(sql("_part", &args), Integer)
            }
            (unit, [Timestamp | Date])
                if PARTS.contains(&unit) && unit != "dow" && unit != "doy" =>
            {
                Typed::new(format!("_part('{unit}', {})", args[0].sql), Integer)
            }
            ("date_diff" | "datediff", [Text, Timestamp, Timestamp] | [Text, Date, Date]) => {
                let unit = part(0)?;
                let times = ["hour", "minute", "second", "millisecond"].contains(&unit.as_str());
                let days = ["year", "quarter", "month", "day"].contains(&unit.as_str());
                let known = days || times && *types[1] == Timestamp;
                if !known {
                    return Err(Untranslated);
                }
                Typed::new(sql("_boundaries", &args), Integer)
            }
            ("strftime", [Timestamp | Date, Text]) => Typed::new(sql("_formatted", &args), Text),
            ("dayname", [Timestamp | Date]) => {
                Typed::new(format!("_formatted({}, '%A')", args[0].sql), Text)
            }
            ("monthname", [Timestamp | Date]) => {
                Typed::new(format!("_formatted({}, '%B')", args[0].sql), Text)
            }
            ("json_extract" | "json_extract_path", [Json, Text | Integer]) => {
                Typed::new(sql("_path", &args), Json)
            }
            ("json_extract_string" | "json_extract_path_text", [Json, Text | Integer]) => {
                Typed::new(sql("_path_text", &args), Text)
            }
            ("json_type", [Json] | [Json, Text]) => Typed::new(sql("_json_type", &args), Text),
            ("json_array_length", [Json]) => Typed::new(sql("_json_array_length", &args), Integer),
            ("json_keys", [Json]) => Typed::new(sql("_json_keys", &args), list_of(&Text)),
            ("from_json", [Json | Text, Text]) => {
                let Expr::Text(structure) = &exprs[1] else { return Err(Untranslated) };
                let of = structure_of(structure)?;
                args[0] = casts::as_json(args[0].clone())?;
                Typed::new(sql("_shaped", &args), of)
            }
            ("to_json", [Type::Null]) => Typed::new("NULL", Json),
            ("to_json", [_]) => {
                let json = casts::json(&args[0])?;
                Typed::new(format!("CASE WHEN {} IS NOT NULL THEN {json} END", args[0].sql), Json)
            }
            (
                "list_contains" | "array_contains" | "list_has" | "array_has" | "contains",
                [List(item), of],
            ) if **item == **of && of.sorts() => Typed::new(
                format!("_list_has({}, {})", args[0].sql, casts::json(&args[1])?),
                Boolean,
            ),
            ("list_sort" | "array_sort", [List(item)])
                if matches!(**item, Text | Integer | Double | Date | Timestamp) =>
            {
                Typed::new(sql("_sorted", &args), (*types[0]).clone())
            }
            ("list_distinct" | "array_distinct", [List(item)])
                if matches!(**item, Text | Integer | Double) =>
            {
                Typed::new(sql("_distinct", &args), (*types[0]).clone())
            }
            ("list_unique" | "array_unique", [List(item)])
                if matches!(**item, Text | Integer | Double) =>
            {
                Typed::new(format!("_length(_distinct({}))", args[0].sql), Integer)
            }
            ("list_sum" | "list_avg" | "list_min" | "list_max" | "list_count", [List(item)]) => {
                let name = &name["list_".len()..];
                let of = match (name, &**item) {
                    ("count", _) => Integer,
                    ("avg", Integer | Double) => Double,
                    ("sum", Integer | Double) => (**item).clone(),
                    ("min" | "max", item) if item.sorts() => item.clone(),
                    _ => return Err(Untranslated),
                };
                let name = match (name, &of) {
                    ("sum", Double) => "_sum",
                    ("avg", _) if **item == Double => "_avg",
                    _ => name,
                };
                let rows = items(&args[0], item);
                let list = &args[0].sql;
                let sql = format!(
                    "CASE WHEN {list} IS NOT NULL THEN (SELECT {name}(value) FROM {rows}) END"
                );
                Typed::new(sql, of)
            }
            (
                "list_position" | "array_position" | "list_indexof" | "array_indexof",
                [List(item), of],
            ) if **item == **of && of.sorts() => Typed::new(
                format!("_list_position({}, {})", args[0].sql, casts::json(&args[1])?),
                Integer,
            ),
            ("list_append" | "array_append" | "array_push_back", [List(item), of])
                if **item == **of =>
            {
                let sql = format!(
                    "_joined(coalesce({}, '[]'), _array({}))",
                    args[0].sql,
                    casts::json(&args[1])?
                );
                Typed::new(sql, (*types[0]).clone())
            }
            ("list_prepend" | "array_prepend", [of, List(item)]) if **item == **of => {
                let sql = format!(
                    "_joined(_array({}), coalesce({}, '[]'))",
                    casts::json(&args[0])?,
                    args[1].sql
                );
                Typed::new(sql, (*types[1]).clone())
            }
            ("trunc", [Integer]) => args.swap_remove(0),
            ("floor" | "ceil" | "ceiling" | "trunc", [Integer | Double]) => {
                let name = if name == "ceiling" { "ceil" } else { name };
                Typed::new(sql(&format!("_{name}"), &args), Double)
            }
            ("last_day", [Timestamp | Date]) => Typed::new(sql("_last_day", &args), Date),
            ("make_date", [Integer, Integer, Integer]) => {
                Typed::new(sql("_make_date", &args), Date)
            }
            ("epoch_ms", [Timestamp]) => Typed::new(sql("_milliseconds", &args), Integer),
            ("date_add", [Timestamp | Date, Interval]) => {
                let time = casts::widened(args[0].clone(), &Timestamp).sql;
                Typed::new(format!("_add({time}, {}, 1)", args[1].sql), Timestamp)
            }
            ("right", [Text, Integer]) if matches!(&exprs[1], Expr::Number(n) if n != "0") => {
                Typed::new(format!("_slice({}, - {}, NULL)", args[0].sql, args[1].sql), Text)
            }
            ("json_object", [_, ..]) if args.len().is_multiple_of(2) => {
                let mut parts = Vec::new();
                for pair in args.chunks(2) {
                    if pair[0].of != Text {
                        return Err(Untranslated);
                    }
                    parts.push(format!("{}, {}", pair[0].sql, casts::json(&pair[1])?));
                }
                Typed::new(format!("_object({})", parts.join(", ")), Json)
            }
            ("json_array", _) => {
                let items = args.iter().map(casts::json).collect::<Result<Vec<_>>>()?;
                Typed::new(format!("_array({})", items.join(", ")), Json)
            }
            ("list_reverse" | "array_reverse", [List(_)]) => {
                Typed::new(sql("_reversed", &args), (*types[0]).clone())
            }
            ("list_concat" | "array_concat" | "list_cat", [List(a), List(b)]) if a == b => {
                // Nothing to add is no nothing; `||` has it the other way.
                let sql = format!(
                    "_joined(coalesce({}, '[]'), coalesce({}, '[]'))",
                    args[0].sql, args[1].sql
                );
                Typed::new(sql, (*types[0]).clone())
            }
            ("list_extract" | "array_extract" | "list_element", [List(item), Integer]) => {
                item_of("_item", &args[0].sql, &args[1].sql, item)
            }
            ("array_to_string" | "list_to_string", [List(item), Text]) if **item == Text => {
                Typed::new(sql("_list_text", &args), Text)
            }
            ("map_keys", [Type::Map(_)]) => Typed::new(sql("_json_keys", &args), list_of(&Text)),
            ("struct_extract", [Type::Struct(_), Text]) => return Err(Untranslated),
            _ => return Err(Untranslated),
        })
    }
}

/// Whether it is an integer of 32 bits to DuckDB, that takes no wider one in some places.
pub(super) fn is_narrow(expr: &Expr) -> bool {
    match expr {
        Expr::Number(number) => number.parse::<i32>().is_ok(),
        Expr::Negative(inner) | Expr::Parens(inner) => is_narrow(inner),
        Expr::Cast(_, Written::Integer(bits), _) => *bits <= 32,
        _ => false,
    }
}

/// The type that `from_json` is told: nested objects, with texts and JSON at their ends.
fn structure_of(text: &str) -> Result<Type> {
    let json =
        json_text::Json::parse(text, json_text::Specials::Refuse).map_err(|_| Untranslated)?;
    if json.is_object() { shape(json) } else { Err(Untranslated) }
}

fn shape(json: json_text::Json<'_>) -> Result<Type> {
    if json.is_object() {
        let fields = json.fields().map(|(name, of)| Ok((name.into_owned(), shape(of)?)));
        return Ok(Type::Struct(fields.collect::<Result<Vec<_>>>()?));
    }
    match json.as_str().as_deref() {
        Some("VARCHAR") => Ok(Type::Text),
        Some("JSON") => Ok(Type::Json),
        _ => Err(Untranslated),
    }
}
