//! Placeholder of the next commit.
#[expect(missing_docs, reason = "next commit")]
#[proc_macro_attribute]
pub fn udf(_: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    item
}
