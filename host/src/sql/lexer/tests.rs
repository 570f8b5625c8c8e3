use proptest::prelude::*;

use super::*;

/// The statement with code as it is, and marks around all else.
fn show(sql: &str, dialect: Dialect) -> String {
    let (pieces, outcome) = split(sql, dialect);
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Code(text) => out.push_str(text),
            Piece::Blank => out.push('_'),
            Piece::Quoted(text) => out.push_str(&format!("<{text}>")),
            Piece::Comment(text) => out.push_str(&format!("#{text}#")),
            Piece::Param(name, quoting) => out.push_str(&format!("[{name} {quoting:?}]")),
            Piece::Ref(reference) => out.push_str(&format!("[ref {}]", reference.name)),
        }
    }
    if let Err(fault) = outcome {
        out.push_str(&format!(" !{fault}"));
    }
    out
}

#[track_caller]
fn check(sql: &str, want: &str) {
    for dialect in [Dialect::Sqlite, Dialect::DuckDb] {
        assert_eq!(show(sql, dialect), want, "{sql} {dialect:?}");
    }
}

#[track_caller]
fn differ(sql: &str, sqlite: &str, duckdb: &str) {
    assert_eq!(show(sql, Dialect::Sqlite), sqlite, "{sql} sqlite");
    assert_eq!(show(sql, Dialect::DuckDb), duckdb, "{sql} duckdb");
}

#[test]
fn texts_and_identifiers() {
    check("a 'b' c", "a <'b'> c");
    check(r"'\' {{op}}", r"<'\'> [ref op]");
    check("'it''s $p'", "<'it''s >[p Text]<'>");
    check(r#""a""b $p""#, r#"<"a""b >[p Identifier]<">"#);
    check("'{{op}} -- /* $5 $'", "<'{{op}} -- /* $5 $'>");
    check("'a$p$q'", "<'a>[p Text][q Text]<'>");
    check("'a'\n'b'", "<'a'>\n<'b'>");
    check("x'00'", "x<'00'>");
}

#[test]
fn comments() {
    check("a -- {{op}} $p 'x\nb", "a #-- {{op}} $p 'x#\nb");
    check("a /* ' \" $p {{x}} */ b", "a #/* ' \" $p {{x}} */# b");
    check("a/**/b */", "a#/**/#b */");
    check("1 - -2 -> 'x'", "1 - -2 -> <'x'>");
    check("a*/*x*/b", "a*#/*x*/#b");
    differ("/* /* */ $p */", "#/* /* */# [p Code] */", "#/* /* */ $p */#");
    differ("-- a\r$p", "#-- a\r$p#", "#-- a#\r[p Code]");
}

#[test]
fn parameters() {
    check("$a $ab $a_b", "[a Code] [ab Code] [a_b Code]");
    check("$5 $ $é a$b", "$5 $ $é a$b");
    check("$a$b", "[a Code][b Code]");
    check("10 -$n", "10 -[n Code]");
    check("5$a", "5[a Code]");
    differ(
        "$a$ x $a$",
        " !line 1 column 1: the sqlite engine has no dollar-quoted text; write `'…'`",
        "<$a$ x $a$>",
    );
    differ(
        "$$ {{x}} $p $$",
        " !line 1 column 1: the sqlite engine has no dollar-quoted text; write `'…'`",
        "<$$ {{x}} $p $$>",
    );
    differ(
        "$a$ x $A$ $$a$",
        " !line 1 column 1: the sqlite engine has no dollar-quoted text; write `'…'`",
        "<$a$ x $A$ $$a$>",
    );
}

#[test]
fn what_only_one_engine_has() {
    differ(
        r"E'a\'b $p'",
        r"E<'a\'>b [p Code] !line 1 column 10: this text is not closed",
        r"E<'a\'b >[p EscapeText]<'>",
    );
    differ(r"xE'a\' b", r"xE<'a\'> b", r"xE<'a\'> b");
    differ(r"1e'\''", "1e !line 1 column 3: this text is not closed", r"1e<'\''>");
    differ(
        "e'a'\n--x\n'b\\'c'",
        "e<'a'>\n#--x#\n<'b\\'>c !line 3 column 6: this text is not closed",
        "e<'a'\n--x\n'b\\'c'>",
    );
    differ("e'a' 'b\\'", "e<'a'> <'b\\'>", "e<'a'> <'b\\'>");
    differ("[a {{x}}] `{{y}}`", "<[a {{x}}]> <`{{y}}`>", "[a [ref x]] `[ref y]`");
    differ("a\u{a0}$p", "a\u{a0}$p", "a_[p Code]");
    differ("a\u{a0}e'\\''", "a\u{a0}e !line 1 column 4: this text is not closed", "a_e<'\\''>");
    check("\u{feff}$p", "_[p Code]");
}

#[test]
fn a_tag_is_closed_by_the_next_of_its_kind_or_is_none() {
    let none = " !line 1 column 1: the sqlite engine has no dollar-quoted text; write `'…'`";
    differ(
        "$a$ '$a$' $b",
        none,
        "<$a$ '$a$><' >[b Text] !line 1 column 9: this text is not closed",
    );
    differ("$a$ $a$ $a$ $b$", none, "<$a$ $a$> [a Code]$ [b Code]$");
    check("$a$b$a b", "[a Code][b Code][a Code] b");
    let many = (0..50_000).map(|n| format!("$t{n}$ ")).collect::<String>();
    let (pieces, outcome) = split(&many, Dialect::DuckDb);
    assert_eq!((pieces.len(), outcome), (100_000, Ok(())));
}

#[test]
fn references() {
    check("FROM {{op}}x", "FROM [ref op]x");
    check("{'a': {'b': 1}}", "{<'a'>: {<'b'>: 1}}");
    check("{{a?k='}}'}}'x'", "[ref a]<'x'>");
    check("x\n {{1}}", "x\n  !line 2 column 4: the name of an operation is expected here");
}

#[test]
fn unclosed() {
    check("a 'b", "a  !line 1 column 3: this text is not closed");
    check("a \"b", "a  !line 1 column 3: this identifier is not closed");
    check("a /*b", "a  !line 1 column 3: this comment is not closed");
    check("a \0", " !line 1 column 3: a NUL character cannot stand in SQL");
}

/// Pieces of statements that try to confuse a lexer.
fn hostile() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "'",
        "''",
        "\"",
        "\\",
        "E'",
        "e",
        "--",
        "/*",
        "*/",
        "\n",
        "\r",
        "$$",
        "$a$",
        "$p",
        "$",
        "{{op}}",
        "{{op?k=$p}}",
        "{{",
        "}}",
        "[",
        "]",
        "`",
        " ",
        "1",
        ".",
        "é",
        "\u{a0}",
        "\u{feff}",
        "U&'",
        "x",
        ";",
        "(",
        ")",
        "a",
    ]);
    prop::collection::vec(parts, 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn the_pieces_are_the_statement(sql in hostile(), duckdb in any::<bool>()) {
        let dialect = if duckdb { Dialect::DuckDb } else { Dialect::Sqlite };
        let (pieces, outcome) = split(&sql, dialect);
        let mut rest = sql.as_str();
        for piece in &pieces {
            let length = match piece {
                Piece::Code(text) | Piece::Quoted(text) | Piece::Comment(text) => {
                    prop_assert!(rest.starts_with(text));
                    text.len()
                }
                Piece::Blank => rest.chars().next().map_or(0, char::len_utf8),
                Piece::Param(name, _) => {
                    let written = format!("${name}");
                    prop_assert!(rest.starts_with(&written));
                    written.len()
                }
                Piece::Ref(reference) => {
                    let (again, length) = refs::parse(rest).expect("it was parsed here");
                    prop_assert_eq!(&again, reference);
                    length
                }
            };
            rest = &rest[length..];
        }
        prop_assert!(outcome.is_err() || rest.is_empty());
    }
}
