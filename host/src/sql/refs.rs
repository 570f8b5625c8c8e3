//! References: `{{project.op?key=value}}` (the SQL contract §2).

use std::collections::HashSet;

use super::lexer::{is_name, is_name_start, name_len};

/// A reference as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ref<'a> {
    /// The name as written, dots included.
    pub name: &'a str,
    /// Its arguments in order; no key twice.
    pub args: Vec<Arg<'a>>,
}

/// `key=value` of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg<'a> {
    /// The parameter of the operation.
    pub key: &'a str,
    /// The value; parameters are put in after the reference was parsed, so that no value can add
    /// an argument or end the reference.
    pub value: Vec<Part<'a>>,
}

/// Part of an argument's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// Characters that stand for themselves.
    Text(&'a str),
    /// `$name`.
    Param(&'a str),
}

/// Why a reference does not parse, `at` bytes after its first brace.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, in bytes.
    pub at: usize,
    /// What is wrong and what was expected.
    pub what: String,
}

/// The reference that `text` starts with, and its length in bytes.
pub fn parse(text: &str) -> Result<(Ref<'_>, usize), Fault> {
    let mut reader = Reader { text, at: 2 };
    reader.blanks();
    let name = reader.name()?;
    let mut args: Vec<Arg<'_>> = Vec::new();
    let mut keys = HashSet::new();
    reader.blanks();
    if reader.take("?") {
        loop {
            reader.blanks();
            let at = reader.at;
            let arg = reader.arg()?;
            if !keys.insert(arg.key) {
                return Err(Fault {
                    at,
                    what: format!("the argument `{}` is given twice", arg.key),
                });
            }
            args.push(arg);
            reader.blanks();
            if !reader.take("&") {
                break;
            }
        }
    }
    if !reader.take("}}") {
        let what = if reader.rest().starts_with("{{") {
            "a reference cannot stand inside a reference".to_owned()
        } else if args.is_empty() {
            "a reference is written `{{name}}` or `{{name?key=value}}`; expected `?` or `}}` here"
                .to_owned()
        } else {
            "expected `&` or `}}` here; a value with blanks, `&`, `=`, quotes or braces needs `'…'`"
                .to_owned()
        };
        return Err(Fault { at: reader.at, what });
    }
    Ok((Ref { name, args }, reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn blanks(&mut self) {
        self.at += self.rest().bytes().take_while(u8::is_ascii_whitespace).count();
    }

    fn fault<T>(&self, what: &str) -> Result<T, Fault> {
        Err(Fault { at: self.at, what: what.to_owned() })
    }

    /// One to three segments; a dash may stand in a segment, not first.
    fn name(&mut self) -> Result<&'a str, Fault> {
        let start = self.at;
        for segment in 1.. {
            let bytes = self.rest().as_bytes();
            if !bytes.first().is_some_and(|b| is_name_start(*b)) {
                return self.fault("the name of an operation is expected here");
            }
            self.at += bytes.iter().take_while(|b| is_name(**b) || **b == b'-').count();
            if !self.rest().starts_with('.') {
                break;
            }
            if segment == 3 {
                return self.fault("a name has at most three parts, `workspace.project.operation`");
            }
            self.at += 1;
        }
        Ok(&self.text[start..self.at])
    }

    fn arg(&mut self) -> Result<Arg<'a>, Fault> {
        let len = name_len(self.rest().as_bytes());
        if len == 0 {
            return self.fault("an argument `key=value` is expected here");
        }
        let key = &self.rest()[..len];
        self.at += len;
        self.blanks();
        if !self.take("=") {
            return self.fault(&format!("the argument `{key}` needs `=` and a value"));
        }
        self.blanks();
        let value = if self.take("'") { self.quoted_value()? } else { self.bare_value() };
        Ok(Arg { key, value })
    }

    fn bare_value(&mut self) -> Vec<Part<'a>> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| {
                matches!(c, '&' | '=' | '{' | '}' | '\'' | '"') || c.is_ascii_whitespace()
            })
            .unwrap_or(rest.len());
        self.at += end;
        let mut parts = Vec::new();
        with_params(&rest[..end], &mut parts);
        parts
    }

    fn quoted_value(&mut self) -> Result<Vec<Part<'a>>, Fault> {
        let mut parts = Vec::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find('\'') else {
                return self.fault("this quoted value is not closed");
            };
            if rest[end + 1..].starts_with('\'') {
                // Two quotes are one: the first goes with what stands before it.
                with_params(&rest[..end], &mut parts);
                parts.push(Part::Text("'"));
                self.at += end + 2;
            } else {
                with_params(&rest[..end], &mut parts);
                self.at += end + 1;
                return Ok(parts);
            }
        }
    }
}

/// Splits a value at its parameters.
fn with_params<'a>(mut text: &'a str, parts: &mut Vec<Part<'a>>) {
    let mut from = 0;
    while let Some(dollar) = text[from..].find('$').map(|n| from + n) {
        let len = name_len(&text.as_bytes()[dollar + 1..]);
        if len == 0 {
            from = dollar + 1;
            continue;
        }
        if dollar > 0 {
            parts.push(Part::Text(&text[..dollar]));
        }
        parts.push(Part::Param(&text[dollar + 1..dollar + 1 + len]));
        text = &text[dollar + 1 + len..];
        from = 0;
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &Ref<'_>) -> String {
        let mut out = of.name.to_owned();
        for arg in &of.args {
            out.push_str(&format!(" {}=", arg.key));
            for part in &arg.value {
                match part {
                    Part::Text(text) => out.push_str(&format!("<{text}>")),
                    Part::Param(name) => out.push_str(&format!("${name}")),
                }
            }
        }
        out
    }

    #[test]
    fn what_parses() {
        for (written, want, len) in [
            ("{{op}}", "op", 6),
            ("{{ _a.b-c.d_1 }} x", "_a.b-c.d_1", 16),
            ("{{op?k=v}}", "op k=<v>", 10),
            ("{{ op ? k = 'a, b & c' & j= }}", "op k=<a, b & c> j=", 30),
            ("{{op?k='it''s'}}", "op k=<it><'><s>", 16),
            ("{{op?k=$p}}", "op k=$p", 11),
            ("{{op?k='a $p b $5 $'}}", "op k=<a >$p< b $5 $>", 22),
            ("{{op?k=$a$b}}", "op k=$a$b", 13),
            ("{{op?k='}}'}}", "op k=<}}>", 13),
        ] {
            let (found, at) = parse(written).expect(written);
            assert_eq!((text(&found).as_str(), at), (want, len), "{written}");
        }
    }

    #[test]
    fn many_arguments_are_told_apart() {
        let args = (0..100_000).map(|n| format!("k{n}=")).collect::<Vec<_>>().join("&");
        let (once, twice) = (format!("{{{{op?{args}}}}}"), format!("{{{{op?{args}&k7=}}}}"));
        let (found, _) = parse(&once).expect("all are different");
        assert_eq!(found.args.len(), 100_000);
        assert!(parse(&twice).is_err_and(|fault| fault.what.contains("`k7` is given twice")));
    }

    #[test]
    fn what_does_not() {
        for (written, at) in [
            ("{{}}", 2),
            ("{{op} ", 4),
            ("{{op", 4),
            ("{{1op}}", 2),
            ("{{a.b.c.d}}", 7),
            ("{{a..b}}", 4),
            ("{{op?}}", 5),
            ("{{op?k}}", 6),
            ("{{op?k=a&}}", 9),
            ("{{op?k=a&k=b}}", 9),
            ("{{op?k='x}}", 8),
            ("{{op?k={{x}}}}", 7),
            ("{{op?k=a b}}", 9),
            ("{{op?k=\"a\"}}", 7),
            ("{{../x}}", 2),
        ] {
            assert_eq!(parse(written).expect_err(written).at, at, "{written}");
        }
    }
}
