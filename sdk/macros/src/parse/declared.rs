//! `#[udf(…)]`: what an operation declares to touch.

use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitStr, Result, Token, parenthesized};

/// What stands in `#[udf(…)]`.
#[derive(Default)]
pub(crate) struct Declared {
    pub(crate) reads: Vec<LitStr>,
    pub(crate) writes: Vec<LitStr>,
    pub(crate) calls: Vec<LitStr>,
    pub(crate) logs: Vec<LitStr>,
    pub(crate) net: bool,
    pub(crate) folders: bool,
    pub(crate) folders_read_only: bool,
    pub(crate) columns: Option<Expr>,
    pub(crate) rows: Option<LitStr>,
}

const KNOWN: &str = "`reads(\"…\")`, `writes(\"…\")`, `calls(\"project.op\")`, `logs(\"…\")`, `columns(PATH)`, \
                     `rows(\"member\")`, `folders`, `folders(read)` and `net`";

impl Parse for Declared {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut declared = Self::default();
        while !input.is_empty() {
            let name = Ident::parse_any(input)?;
            match name.to_string().as_str() {
                "reads" => declared.reads.extend(names(&name, input, check_collection)?),
                "writes" => declared.writes.extend(names(&name, input, check_collection)?),
                "calls" => declared.calls.extend(names(&name, input, check_operation)?),
                "logs" => declared.logs.extend(names(&name, input, check_collection)?),
                "net" => declared.net = true,
                "folders" => {
                    declared.folders = true;
                    declared.folders_read_only = read_only(input)?;
                }
                "columns" => {
                    let content;
                    parenthesized!(content in input);
                    declared.columns = Some(content.parse()?);
                }
                "rows" => {
                    let content;
                    parenthesized!(content in input);
                    declared.rows = Some(content.parse()?);
                }
                other => {
                    return Err(Error::new(
                        name.span(),
                        format!("`#[udf]` does not know `{other}`; it takes {KNOWN}"),
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(declared)
    }
}

/// `(read)` after `folders`, or nothing.
fn read_only(input: ParseStream<'_>) -> Result<bool> {
    if !input.peek(syn::token::Paren) {
        return Ok(false);
    }
    let content;
    parenthesized!(content in input);
    let word = Ident::parse_any(&content)?;
    if word == "read" && content.is_empty() {
        return Ok(true);
    }
    Err(Error::new(word.span(), "`folders` takes `(read)`, or nothing if folders are also written"))
}

/// `("a", "b")` after a name.
fn names(
    name: &Ident,
    input: ParseStream<'_>,
    check: fn(&LitStr) -> Result<()>,
) -> Result<Vec<LitStr>> {
    if !input.peek(syn::token::Paren) {
        return Err(Error::new(
            name.span(),
            format!("`{name}` lists names in parentheses: `{name}(\"…\")`"),
        ));
    }
    let content;
    parenthesized!(content in input);
    let list = Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?;
    list.iter().try_for_each(check)?;
    Ok(list.into_iter().collect())
}

fn check_collection(name: &LitStr) -> Result<()> {
    let text = name.value();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || !text.chars().all(plain) {
        return Err(Error::new(
            name.span(),
            "a name here is letters, digits, `_` and `-`: `cards` stands for `state/cards.json`",
        ));
    }
    Ok(())
}

fn check_operation(name: &LitStr) -> Result<()> {
    let text = name.value();
    let parts = text.split('.').collect::<Vec<_>>();
    if !(2..=3).contains(&parts.len()) || parts.iter().any(|part| part.is_empty()) {
        return Err(Error::new(
            name.span(),
            "an operation is named `project.op`, or `workspace.project.op`",
        ));
    }
    Ok(())
}
