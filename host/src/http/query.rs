//! The query of a request, looked into without decoding what is not asked for.

use std::borrow::Cow;

/// The values that `name` has in the query, decoded, in order. Names are taken as written: no client escapes ours.
pub(crate) fn values<'a>(
    query: Option<&'a str>,
    name: &'a str,
) -> impl Iterator<Item = Cow<'a, str>> {
    query.unwrap_or_default().split('&').filter_map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then(|| decode(value))
    })
}

/// `+` and `%20` are a blank, as forms write it.
fn decode(value: &str) -> Cow<'_, str> {
    if !value.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(value);
    }
    let blanks = value.replace('+', " ");
    let bytes = Cow::from(percent_encoding::percent_decode_str(&blanks));
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_decoded() {
        for (query, want) in [
            (None, &[][..]),
            (Some(""), &[]),
            (Some("a=1&t=x&b"), &["x"]),
            (Some("t=x&t=y"), &["x", "y"]),
            (Some("t"), &[""]),
            (Some("t=a%2Db+c%20d=e"), &["a-b c d=e"]),
            (Some("t=%ff%"), &["\u{fffd}%"]),
            (Some("tt=x&T=y&=t"), &[]),
        ] {
            assert_eq!(values(query, "t").collect::<Vec<_>>(), want, "{query:?}");
        }
    }
}
