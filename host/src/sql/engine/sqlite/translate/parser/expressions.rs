//! Expressions, by DuckDB's precedence.

use super::super::tokens::Kind;
use super::super::tree::{Call, Expr, Over, Written};
use super::super::{Result, Untranslated};
use super::Parser;

/// How tight operators bind, loosest first.
mod binds {
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const IS: u8 = 4;
    pub(super) const COMPARISON: u8 = 5;
    pub(super) const LIKE: u8 = 6;
    pub(super) const OTHER: u8 = 7;
    pub(super) const SUM: u8 = 8;
    pub(super) const PRODUCT: u8 = 9;
}

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.deeper(|parser| parser.climb(binds::OR))
    }

    /// An expression of operators that bind at least so tight.
    fn climb(&mut self, least: u8) -> Result<Expr> {
        let mut left = if least <= binds::NOT && self.words("not") {
            Expr::Not(Box::new(self.deeper(|parser| parser.climb(binds::NOT))?))
        } else {
            self.unary()?
        };
        loop {
            let before = self.at;
            match self.operator(least, left)? {
                (next, true) => {
                    self.higher()?;
                    left = next;
                }
                (same, false) => {
                    self.at = before;
                    return Ok(same);
                }
            }
        }
    }

    /// What an operator that comes next makes of `left`; `false` if none of this tightness does.
    fn operator(&mut self, least: u8, left: Expr) -> Result<(Expr, bool)> {
        let symbol = match self.peek(0) {
            Some(Kind::Operator(symbol)) => *symbol,
            _ => "",
        };
        let tightness = match symbol {
            "=" | "==" | "<>" | "!=" | "<" | "<=" | ">" | ">=" => binds::COMPARISON,
            "||" | "->>" | "->" => binds::OTHER,
            "+" | "-" => binds::SUM,
            "*" | "/" | "//" | "%" => binds::PRODUCT,
            _ => 0,
        };
        if tightness > 0 {
            if tightness < least {
                return Ok((left, false));
            }
            // Comparisons do not stand side by side.
            if tightness == binds::COMPARISON && is_comparison(&left) {
                return Err(Untranslated);
            }
            self.at += 1;
            let right = self.deeper(|parser| parser.climb(tightness + 1))?;
            return Ok((Expr::Binary(symbol.to_owned(), Box::new(left), Box::new(right)), true));
        }
        if least <= binds::AND && self.words("and") {
            let right = self.deeper(|parser| parser.climb(binds::AND + 1))?;
            return Ok((Expr::Binary("AND".to_owned(), Box::new(left), Box::new(right)), true));
        }
        if least <= binds::OR && self.words("or") {
            let right = self.deeper(|parser| parser.climb(binds::OR + 1))?;
            return Ok((Expr::Binary("OR".to_owned(), Box::new(left), Box::new(right)), true));
        }
        if least <= binds::IS && self.words("is") {
            let not = self.words("not");
            if self.words("null") {
                return Ok((Expr::IsNull(Box::new(left), not), true));
            }
            self.expect_words("distinct from")?;
            let right = self.deeper(|parser| parser.climb(binds::IS + 1))?;
            return Ok((Expr::IsDistinct(Box::new(left), Box::new(right), !not), true));
        }
        if least <= binds::LIKE {
            let not = self.words("not");
            for (word, any_case) in [("like", false), ("ilike", true)] {
                if self.words(word) {
                    let right = self.deeper(|parser| parser.climb(binds::LIKE + 1))?;
                    if self.word_at(0, "escape") {
                        return Err(Untranslated);
                    }
                    return Ok((Expr::Like(any_case, Box::new(left), Box::new(right), not), true));
                }
            }
            if self.words("between") {
                let low = self.deeper(|parser| parser.climb(binds::LIKE + 1))?;
                self.expect_words("and")?;
                let high = self.deeper(|parser| parser.climb(binds::LIKE + 1))?;
                return Ok((
                    Expr::Between(Box::new(left), Box::new(low), Box::new(high), not),
                    true,
                ));
            }
            if self.words("in") {
                if self.next_is("[") {
                    // A null among them is one more item, and no answer that is not known.
                    let args = vec![self.brackets()?, left];
                    let call = Call { name: "list_contains".to_owned(), args, ..Call::default() };
                    let found = Expr::Call(Box::new(call));
                    self.higher()?;
                    return Ok((if not { Expr::Not(Box::new(found)) } else { found }, true));
                }
                self.expect("(")?;
                let found = if self.starts_query() {
                    Expr::InQuery(Box::new(left), Box::new(self.query()?), not)
                } else {
                    Expr::In(Box::new(left), self.list(Self::expr)?, not)
                };
                self.expect(")")?;
                return Ok((found, true));
            }
        }
        Ok((left, false))
    }

    fn starts_query(&self) -> bool {
        ["select", "with", "from", "values", "pivot", "unpivot", "summarize"]
            .iter()
            .any(|word| self.word_at(0, word))
    }

    fn unary(&mut self) -> Result<Expr> {
        if self.take("-") {
            return Ok(Expr::Negative(Box::new(self.deeper(Self::unary)?)));
        }
        if self.take("+") {
            return self.deeper(Self::unary);
        }
        let mut expr = self.primary()?;
        loop {
            self.higher()?;
            expr = if self.take("::") {
                Expr::Cast(Box::new(expr), self.written()?, false)
            } else if self.take("[") {
                self.subscript(Box::new(expr))?
            } else if self.next_is(".") && !self.operator_at(1, "*") {
                // What stands after a type would be part of its name.
                if matches!(expr, Expr::Cast(..)) && !self.after_parenthesis() {
                    return Err(Untranslated);
                }
                self.at += 1;
                Expr::Field(Box::new(expr), self.name()?)
            } else {
                return Ok(expr);
            };
        }
    }

    /// Whether `)` was read last.
    fn after_parenthesis(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].kind == Kind::Operator(")")
    }

    fn subscript(&mut self, of: Box<Expr>) -> Result<Expr> {
        let low = if self.next_is(":") { None } else { Some(Box::new(self.expr()?)) };
        if !self.take(":") {
            self.expect("]")?;
            return Ok(Expr::Index(of, low.ok_or(Untranslated)?));
        }
        let high = if self.next_is("]") { None } else { Some(Box::new(self.expr()?)) };
        self.expect("]")?;
        Ok(Expr::Slice(of, low, high))
    }

    fn primary(&mut self) -> Result<Expr> {
        let Some(kind) = self.peek(0).cloned() else { return Err(Untranslated) };
        match kind {
            Kind::Number(number) => {
                self.at += 1;
                Ok(Expr::Number(number))
            }
            Kind::Text(text) => {
                self.at += 1;
                Ok(Expr::Text(text))
            }
            Kind::Operator("(") => {
                self.at += 1;
                let expr = if self.starts_query() {
                    Expr::Query(Box::new(self.query()?))
                } else {
                    Expr::Parens(Box::new(self.expr()?))
                };
                self.expect(")")?;
                Ok(expr)
            }
            Kind::Operator("[") => self.brackets(),
            Kind::Operator("{") => {
                self.at += 1;
                let fields = self.list(|parser| {
                    let name = match parser.peek(0) {
                        Some(Kind::Text(_)) => parser.text()?,
                        _ => parser.name()?,
                    };
                    parser.expect(":")?;
                    Ok((name, parser.expr()?))
                })?;
                self.expect("}")?;
                Ok(Expr::Struct(fields))
            }
            Kind::Operator(_) => Err(Untranslated),
            Kind::Quoted(_) => self.path(),
            Kind::Word(word) => self.word(&word.to_ascii_lowercase()),
        }
    }

    /// `[…]` where no list stands before it: a list, or one made of another.
    fn brackets(&mut self) -> Result<Expr> {
        self.at += 1;
        if self.take("]") {
            return Ok(Expr::List(Vec::new()));
        }
        let first = self.expr()?;
        if self.words("for") {
            let name = self.name()?;
            self.expect_words("in")?;
            let list = self.expr()?;
            let condition = if self.words("if") { Some(Box::new(self.expr()?)) } else { None };
            self.expect("]")?;
            return Ok(Expr::Comprehension(Box::new(first), name, Box::new(list), condition));
        }
        let mut all = vec![first];
        while self.take(",") {
            all.push(self.expr()?);
        }
        self.expect("]")?;
        Ok(Expr::List(all))
    }

    fn word(&mut self, word: &str) -> Result<Expr> {
        let calls = self.operator_at(1, "(");
        let before_text = matches!(self.peek(1), Some(Kind::Text(_)));
        match word {
            "null" | "true" | "false" if !calls => {
                self.at += 1;
                Ok(if word == "null" { Expr::Null } else { Expr::Boolean(word == "true") })
            }
            "case" => self.case(),
            "cast" | "try_cast" if calls => {
                self.at += 2;
                let expr = self.expr()?;
                self.expect_words("as")?;
                let to = self.written()?;
                self.expect(")")?;
                Ok(Expr::Cast(Box::new(expr), to, word == "try_cast"))
            }
            "exists" if calls => {
                self.at += 2;
                let query = self.query()?;
                self.expect(")")?;
                Ok(Expr::Exists(Box::new(query)))
            }
            "date" | "timestamp" if before_text => {
                self.at += 1;
                let to = if word == "date" { Written::Date } else { Written::Timestamp };
                Ok(Expr::Cast(Box::new(Expr::Text(self.text()?)), to, false))
            }
            "interval" if !calls => {
                self.at += 1;
                self.interval()
            }
            "map" if self.operator_at(1, "{") => {
                self.at += 2;
                let entries = self.list(|parser| {
                    let key = parser.expr()?;
                    parser.expect(":")?;
                    Ok((key, parser.expr()?))
                })?;
                self.expect("}")?;
                Ok(Expr::Map(entries))
            }
            "columns" if calls => {
                self.at += 2;
                if let Ok(pattern) = self.text() {
                    self.expect(")")?;
                    let name = "_column".to_owned();
                    let args = vec![Expr::Name(vec![name.clone()]), Expr::Text(pattern)];
                    let call = Call { name: "regexp_matches".to_owned(), args, ..Call::default() };
                    return Ok(Expr::Columns(name, Box::new(Expr::Call(Box::new(call)))));
                }
                let Expr::Lambda(name, condition) = self.expr()? else { return Err(Untranslated) };
                self.expect(")")?;
                Ok(Expr::Columns(name, condition))
            }
            "lambda" if !calls && !before_text && matches!(self.peek(1), Some(Kind::Word(_))) => {
                self.at += 1;
                let name = self.name()?;
                self.expect(":")?;
                Ok(Expr::Lambda(name, Box::new(self.expr()?)))
            }
            "extract" if calls => {
                self.at += 2;
                let part = self.name()?;
                self.expect_words("from")?;
                let of = self.expr()?;
                self.expect(")")?;
                let args = vec![Expr::Text(part), of];
                Ok(Expr::Call(Box::new(Call {
                    name: "date_part".to_owned(),
                    args,
                    ..Call::default()
                })))
            }
            _ if calls && (!Self::is_reserved(word) || matches!(word, "if" | "left" | "right")) => {
                self.call(word)
            }
            _ => self.path(),
        }
    }

    /// A column, perhaps with its table and with fields.
    fn path(&mut self) -> Result<Expr> {
        let mut path = vec![self.name()?];
        while self.next_is(".") && !self.operator_at(1, "*") {
            self.at += 1;
            path.push(self.name()?);
        }
        // A function of a schema.
        if self.next_is("(") { Err(Untranslated) } else { Ok(Expr::Name(path)) }
    }

    fn case(&mut self) -> Result<Expr> {
        self.at += 1;
        let of = if self.word_at(0, "when") { None } else { Some(Box::new(self.expr()?)) };
        let mut whens = Vec::new();
        while self.words("when") {
            let when = self.expr()?;
            self.expect_words("then")?;
            whens.push((when, self.expr()?));
        }
        let otherwise = if self.words("else") { Some(Box::new(self.expr()?)) } else { None };
        self.expect_words("end")?;
        if whens.is_empty() { Err(Untranslated) } else { Ok(Expr::Case(of, whens, otherwise)) }
    }

    fn call(&mut self, name: &str) -> Result<Expr> {
        self.at += 2;
        let mut call = Call { name: name.to_owned(), ..Call::default() };
        if self.take("*") {
            call.star = true;
        } else if !self.next_is(")") {
            call.distinct = self.words("distinct");
            call.args = self.list(Self::expr)?;
            if self.words("order by") {
                call.order = self.list(Self::sort)?;
            }
        }
        self.expect(")")?;
        if self.words("filter") {
            self.expect("(")?;
            self.expect_words("where")?;
            call.filter = Some(self.expr()?);
            self.expect(")")?;
        }
        if self.words("over") {
            call.over = Some(self.over()?);
        }
        Ok(Expr::Call(Box::new(call)))
    }

    fn over(&mut self) -> Result<Over> {
        self.expect("(")?;
        let mut over = Over::default();
        if self.words("partition by") {
            over.partition = self.list(Self::expr)?;
        }
        if self.words("order by") {
            over.order = self.list(Self::sort)?;
        }
        while !self.next_is(")") {
            let word = match self.peek(0) {
                Some(Kind::Word(word)) => word,
                Some(Kind::Number(number)) if number.bytes().all(|b| b.is_ascii_digit()) => number,
                _ => return Err(Untranslated),
            };
            over.frame.push(' ');
            over.frame.push_str(&word.to_ascii_uppercase());
            self.at += 1;
        }
        self.expect(")")?;
        if over.frame.is_empty() || over.frame.starts_with(" ROWS ") {
            Ok(over)
        } else {
            Err(Untranslated)
        }
    }

    /// A type.
    fn written(&mut self) -> Result<Written> {
        let name = self.name()?.to_ascii_lowercase();
        let one = match name.as_str() {
            "varchar" | "text" | "string" => Written::Text,
            "bigint" | "int8" | "long" => Written::Integer(64),
            "integer" | "int" | "int4" => Written::Integer(32),
            "smallint" | "int2" => Written::Integer(16),
            "tinyint" => Written::Integer(8),
            "double" | "float8" => Written::Double,
            "boolean" | "bool" => Written::Boolean,
            "json" => Written::Json,
            "date" => Written::Date,
            "timestamp" | "datetime" => Written::Timestamp,
            _ => return Err(Untranslated),
        };
        if name == "double" {
            self.words("precision");
        }
        if self.next_is("(") || self.word_at(0, "with") {
            return Err(Untranslated);
        }
        if !self.next_is("[") {
            return Ok(one);
        }
        // A list, not one of a fixed length.
        if !self.operator_at(1, "]") {
            return Err(Untranslated);
        }
        self.at += 2;
        match one {
            Written::Text => Ok(Written::Texts),
            Written::Json => Ok(Written::Jsons),
            _ => Err(Untranslated),
        }
    }

    /// `'1 hour 30 minutes'`, `1 DAY`.
    fn interval(&mut self) -> Result<Expr> {
        let mut parts = Vec::new();
        match self.peek(0).cloned() {
            Some(Kind::Text(text)) => {
                self.at += 1;
                let words = text.split_ascii_whitespace().collect::<Vec<_>>();
                if words.is_empty() || words.len() % 2 == 1 {
                    return Err(Untranslated);
                }
                parts.extend(words.chunks(2).map(|two| (two[0].to_owned(), two[1].to_owned())));
            }
            Some(Kind::Number(number)) => {
                self.at += 1;
                parts.push((number, self.name()?));
            }
            _ => return Err(Untranslated),
        }
        let (mut months, mut days, mut micros) = (0_i64, 0_i64, 0_i64);
        for (count, unit) in parts {
            let count = count.parse::<i32>().map_err(|_| Untranslated)?;
            let unit = unit.to_ascii_lowercase();
            let (sum, of) = match unit.strip_suffix('s').unwrap_or(&unit) {
                "year" => (&mut months, 12),
                "month" => (&mut months, 1),
                "week" => (&mut days, 7),
                "day" => (&mut days, 1),
                "hour" => (&mut micros, 3600 * SECOND),
                "minute" => (&mut micros, 60 * SECOND),
                "second" => (&mut micros, SECOND),
                "millisecond" => (&mut micros, 1000),
                _ => return Err(Untranslated),
            };
            let part = i64::from(count).checked_mul(of).ok_or(Untranslated)?;
            *sum = sum.checked_add(part).ok_or(Untranslated)?;
        }
        // DuckDB has no room for more.
        if i32::try_from(months).is_err() || i32::try_from(days).is_err() {
            return Err(Untranslated);
        }
        Ok(Expr::Interval(months, days, micros))
    }
}

/// Whether it is `a = b` or the like, without parentheses.
fn is_comparison(expr: &Expr) -> bool {
    matches!(expr, Expr::Binary(operator, ..) if matches!(operator.as_str(), "=" | "==" | "<>" | "!=" | "<" | "<=" | ">" | ">="))
}
