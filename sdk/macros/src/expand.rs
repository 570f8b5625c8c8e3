//! From what the author means to what a host loads.

use std::sync::Mutex;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn};

use crate::parse::{Declared, Param, Udf, WhenAbsent};

pub(crate) fn udf(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = syn::parse2::<Declared>(attribute)
        .and_then(|declared| Ok((declared, Udf::parse(item.clone())?)));
    match parsed {
        Ok((declared, udf)) => match earlier_udf(&udf) {
            Some(error) => with_error(&udf.item, &error),
            None => expand(&declared, &udf),
        },
        // The function is kept, without what only this macro understands, so that its callers do not
        // fail as well.
        Err(error) => match syn::parse2::<ItemFn>(item) {
            Ok(mut item) => {
                for input in &mut item.sig.inputs {
                    if let syn::FnArg::Typed(typed) = input {
                        typed.attrs.clear();
                    }
                }
                with_error(&item, &error)
            }
            Err(_) => error.into_compile_error(),
        },
    }
}

fn with_error(item: &ItemFn, error: &Error) -> TokenStream {
    let error = error.to_compile_error();
    quote! { #error #[allow(dead_code, unused, reason = "a faulty #[udf]")] #item }
}

/// The second `#[udf]` of a crate. A compiler process expands one crate, so it can remember; an editor's
/// macro server expands the same function again and again and must not.
fn earlier_udf(udf: &Udf) -> Option<Error> {
    static FIRST: Mutex<Option<String>> = Mutex::new(None);
    let program = std::env::current_exe().ok()?;
    let program = program.file_stem()?.to_str()?;
    if !matches!(program, "rustc" | "clippy-driver" | "rustdoc") {
        return None;
    }
    let mut first = FIRST.lock().ok()?;
    match &*first {
        None => {
            *first = Some(udf.name.clone());
            None
        }
        Some(first) => Some(Error::new(
            udf.item.sig.ident.span(),
            format!(
                "a crate is one operation, and this one already has `{first}`: give `{}` a folder of its \
                 own beside it, `udfs/<project>/{}/`, and share code through the project's `common` crate",
                udf.name, udf.name
            ),
        )),
    }
}

fn expand(declared: &Declared, udf: &Udf) -> TokenStream {
    let Udf { item, name, doc, params } = udf;
    let Declared { reads, writes, calls, logs, net, folders, folders_read_only, columns, rows } =
        declared;
    let function = &item.sig.ident;
    let specs = params.iter().map(spec);
    let arguments = params.iter().enumerate().map(|(at, param)| {
        let ty = &param.ty;
        quote_spanned! {ty.span()=> __arguments.get::<#ty>(&Self::SPEC.params[#at])? }
    });
    let columns = match columns {
        Some(path) => quote! { #path },
        None => quote! { &[] },
    };
    let rows = match rows {
        Some(member) => quote! { ::core::option::Option::Some(#member) },
        None => quote! { ::core::option::Option::None },
    };
    quote! {
        #[allow(clippy::too_many_arguments, reason = "the parameters are the operation's interface")]
        #item

        /// The operation as a host loads it.
        #[allow(dead_code, reason = "used by tests, and by no code of the crate")]
        pub(crate) const UDF: ::sdk::Udf = ::sdk::Udf::of::<__Udf>();

        #[doc(hidden)]
        struct __Udf;

        impl ::sdk::__private::Operation for __Udf {
            const SPEC: &'static ::sdk::__private::UdfSpec = &::sdk::__private::UdfSpec {
                op: #name,
                package: ::core::option_env!("CARGO_PKG_NAME"),
                version: ::core::option_env!("CARGO_PKG_VERSION"),
                doc: #doc,
                params: &[#(#specs),*],
                reads: &[#(#reads),*],
                writes: &[#(#writes),*],
                calls: &[#(#calls),*],
                logs: &[#(#logs),*],
                net: #net,
                folders: #folders,
                folders_read_only: #folders_read_only,
                columns: #columns,
                rows: #rows,
                panic: if ::core::cfg!(panic = "unwind") { "unwind" } else { "abort" },
            };

            fn run(
                __context: &::sdk::Context,
                __arguments: &::sdk::__private::Arguments<'_>,
            ) -> ::core::result::Result<::sdk::Reply, ::sdk::UdfError> {
                #function(__context, #(#arguments),*)
            }
        }

        // abi_stable's own name for the symbol a host looks up; `sdk` has a test that compares them.
        #[doc(hidden)]
        #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
        pub static __UDF_HEADER: ::sdk::__private::LibHeader = ::sdk::__private::header::<__Udf>();

        // Two of these in any two modules of a crate are an error that says the same in its name, for
        // compilers `earlier_udf` does not recognise.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! __a_crate_has_one_udf_give_the_other_its_own_folder { () => {}; }
    }
}

fn spec(param: &Param) -> TokenStream {
    let Param { name, doc, ty, default, filters } = param;
    let of_type = quote_spanned! {ty.span()=> <#ty as ::sdk::__private::FromParam<'_>> };
    let default = match default {
        WhenAbsent::Text(text) => quote! { ::core::option::Option::Some(#text) },
        WhenAbsent::None => quote! {
            if #of_type::OPTIONAL {
                ::core::option::Option::Some("")
            } else {
                ::core::option::Option::None
            }
        },
    };
    let filters = match filters {
        Some(column) => quote! { ::core::option::Option::Some(#column) },
        None => quote! { ::core::option::Option::None },
    };
    quote! {
        ::sdk::__private::ParamSpec {
            name: #name,
            doc: #doc,
            json_type: #of_type::JSON_TYPE,
            default: #default,
            filters: #filters,
        }
    }
}
