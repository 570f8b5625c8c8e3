//! From tokens to what the author means, or a sentence about what is wrong.

mod declared;
mod param;

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, Meta,
    PathArguments, Result, ReturnType, Type,
};

pub(crate) use declared::Declared;
pub(crate) use param::{Param, WhenAbsent};

/// The function, without what only the macro reads.
pub(crate) struct Udf {
    pub(crate) item: ItemFn,
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) params: Vec<Param>,
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
