//! A parameter and its `#[arg(…)]`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Lit, LitStr, Meta, Pat, PathArguments,
    Result, Token, Type,
};

use super::{doc, last_segment};

/// One parameter of the operation.
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

impl Param {
    /// Reads a parameter and takes off what rustc would refuse there.
    pub(super) fn parse(input: &mut FnArg) -> Result<Self> {
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
