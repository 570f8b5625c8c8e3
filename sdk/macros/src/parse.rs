//! From tokens to what the author means, or a sentence about what is wrong.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, LitStr, Meta, Pat,
    PathArguments, Result, ReturnType, Token, Type, parenthesized,
};

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

/// The function, without what only the macro reads.
pub(crate) struct Udf {
    pub(crate) item: ItemFn,
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) params: Vec<Param>,
}

pub(crate) struct Param {
    /// As callers send it.
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) ty: Type,
    pub(crate) default: WhenAbsent,
    pub(crate) filters: Option<LitStr>,
}

/// What a parameter is when it is left out.
pub(crate) enum WhenAbsent {
    /// Required, unless the type is optional.
    None,
    /// This text; empty for the zero value.
    Text(String),
}

impl Udf {
    pub(crate) fn parse(item: proc_macro2::TokenStream) -> Result<Self> {
        let mut item: ItemFn = syn::parse2(item).map_err(|error| {
            Error::new(error.span(), format!("`#[udf]` goes on a function ({error})"))
        })?;
        check_signature(&item)?;
        let mut inputs = item.sig.inputs.iter_mut();
        check_context(inputs.next(), item.sig.ident.span())?;
        let mut params: Vec<Param> = Vec::new();
        for input in inputs {
            let param = Param::parse(input)?;
            if params.iter().any(|known| known.name == param.name) {
                return Err(Error::new(
                    input.span(),
                    format!("two parameters are named `{}`", param.name),
                ));
            }
            params.push(param);
        }
        check_return(&item)?;
        let name = item.sig.ident.unraw().to_string();
        let doc = doc(&item.attrs);
        Ok(Self { item, name, doc, params })
    }
}

fn check_signature(item: &ItemFn) -> Result<()> {
    let sig = &item.sig;
    if let Some(token) = &sig.asyncness {
        return Err(Error::new(
            token.span(),
            "a `#[udf]` function is not async: a host runs every call on a thread where it may block",
        ));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new(
            sig.generics.span(),
            "a `#[udf]` function has no generic parameters: hosts call one function with texts. Leave \
             lifetimes out and name the types",
        ));
    }
    if let Some(token) = &sig.abi {
        return Err(Error::new(
            token.span(),
            "`#[udf]` writes the exported function: leave `extern` out",
        ));
    }
    if let Some(token) = &sig.variadic {
        return Err(Error::new(token.span(), "a `#[udf]` function has a fixed list of parameters"));
    }
    Ok(())
}

fn check_context(first: Option<&mut FnArg>, at: Span) -> Result<()> {
    let sentence = "the first parameter of a `#[udf]` function is `ctx: &Context`";
    let Some(first) = first else { return Err(Error::new(at, sentence)) };
    let context = match first {
        FnArg::Typed(typed) => match &*typed.ty {
            Type::Reference(reference) if reference.mutability.is_none() => {
                last_segment(&reference.elem).is_some_and(|segment| segment == "Context")
            }
            _ => false,
        },
        FnArg::Receiver(_) => false,
    };
    if context { Ok(()) } else { Err(Error::new(first.span(), sentence)) }
}

fn check_return(item: &ItemFn) -> Result<()> {
    let sentence = "a `#[udf]` function returns `Result<Reply, UdfError>`: `Reply::value(&…)` makes a reply \
                    of any serde value, `UdfError::raised(\"…\")` an error of a sentence";
    let ReturnType::Type(_, ty) = &item.sig.output else {
        return Err(Error::new(item.sig.ident.span(), sentence));
    };
    let arguments = match &**ty {
        Type::Path(path) => path.path.segments.last().filter(|last| last.ident == "Result"),
        _ => None,
    };
    let reply = arguments.is_some_and(|last| match &last.arguments {
        PathArguments::AngleBracketed(list) => {
            let mut types = list.args.iter().map(|argument| match argument {
                GenericArgument::Type(ty) => last_segment(ty),
                _ => None,
            });
            types.next().flatten().is_some_and(|ok| ok == "Reply")
                && types.next().flatten().is_some_and(|error| error == "UdfError")
        }
        _ => false,
    });
    if reply { Ok(()) } else { Err(Error::new(ty.span(), sentence)) }
}

fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

impl Param {
    /// Reads a parameter and takes off what rustc would refuse there.
    fn parse(input: &mut FnArg) -> Result<Self> {
        let typed = match input {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(receiver) => {
                return Err(Error::new(receiver.span(), "a `#[udf]` function is not a method"));
            }
        };
        let ident = match &*typed.pat {
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => &pat.ident,
            other => {
                return Err(Error::new(
                    other.span(),
                    "a parameter of a `#[udf]` function is a plain name, which is what callers send",
                ));
            }
        };
        let name = ident.unraw().to_string().trim_start_matches('_').to_owned();
        if name == "app_dir" {
            return Err(Error::new(
                ident.span(),
                "`app_dir` is a parameter of every operation and the host takes it: `ctx` already reads \
                 and writes there. Remove it",
            ));
        }
        if let Type::ImplTrait(ty) = &*typed.ty {
            return Err(Error::new(
                ty.span(),
                "name the type of the parameter instead of `impl …`",
            ));
        }
        let doc = doc(&typed.attrs);
        let Arg { default, filters } = Arg::parse(&typed.attrs, &typed.ty)?;
        typed.attrs.retain(|attr| !attr.path().is_ident("doc") && !attr.path().is_ident("arg"));
        Ok(Self { name, doc, ty: (*typed.ty).clone(), default, filters })
    }
}

/// What stands in the `#[arg(…)]` of a parameter.
struct Arg {
    default: WhenAbsent,
    filters: Option<LitStr>,
}

impl Arg {
    fn parse(attrs: &[Attribute], ty: &Type) -> Result<Self> {
        let mut arg = Self { default: WhenAbsent::None, filters: None };
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("arg")) {
            let sentence =
                "`#[arg]` takes `default`, `default = …` with a literal, or `filters = \"column\"`";
            let metas = attr
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .map_err(|error| Error::new(error.span(), sentence))?;
            for meta in metas {
                if meta.path().is_ident("default") {
                    arg.default = when_absent(&meta, ty, sentence)?;
                } else if meta.path().is_ident("filters") {
                    arg.filters = Some(column(&meta, sentence)?);
                } else {
                    return Err(Error::new(meta.span(), sentence));
                }
            }
        }
        Ok(arg)
    }
}

fn when_absent(meta: &Meta, ty: &Type, sentence: &str) -> Result<WhenAbsent> {
    match meta {
        Meta::Path(_) => Ok(WhenAbsent::Text(String::new())),
        Meta::NameValue(pair) => {
            let text =
                literal_text(&pair.value).ok_or_else(|| Error::new(pair.value.span(), sentence))?;
            check_default(&text, ty, pair.value.span())?;
            Ok(WhenAbsent::Text(text))
        }
        Meta::List(list) => Err(Error::new(list.span(), sentence)),
    }
}

fn column(meta: &Meta, sentence: &str) -> Result<LitStr> {
    match meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => Ok(name.clone()),
            other => Err(Error::new(other.span(), sentence)),
        },
        other => Err(Error::new(other.span(), sentence)),
    }
}

fn literal_text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Str(text) => Some(text.value()),
            Lit::Int(number) => Some(number.base10_digits().to_owned()),
            Lit::Float(number) => Some(number.base10_digits().to_owned()),
            Lit::Bool(flag) => Some(flag.value.to_string()),
            _ => None,
        },
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => match &*unary.expr {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
                Some(format!("-{}", number.base10_digits()))
            }
            Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => {
                Some(format!("-{}", number.base10_digits()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A default that could never be read would fail at every call; the types that are known by name are
/// tried here.
fn check_default(text: &str, ty: &Type, at: Span) -> Result<()> {
    let Some(name) = last_segment(ty) else { return Ok(()) };
    if name == "Option" {
        return match inner_type(ty) {
            Some(inner) => check_default(text, inner, at),
            None => Ok(()),
        };
    }
    macro_rules! reads_as {
        ($($known:ident)*) => {
            match name.to_string().as_str() {
                $( stringify!($known) => text.parse::<$known>().is_ok(), )*
                _ => true,
            }
        };
    }
    let fits = text.is_empty() || reads_as!(bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);
    if fits {
        Ok(())
    } else {
        Err(Error::new(at, format!("the default `{text}` is no `{name}`: no call could use it")))
    }
}

fn inner_type(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    match &path.path.segments.last()?.arguments {
        PathArguments::AngleBracketed(list) => {
            list.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
        }
        _ => None,
    }
}

/// The text of doc comments: lines without the blank after `///`.
fn doc(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines
        .flat_map(|text| text.split('\n').map(str::to_owned).collect::<Vec<_>>())
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned())
        .collect();
    lines.join("\n").trim().to_owned()
}
