//! Cuts texts to a number of characters; every cap of the contract counts characters, not bytes.

/// The first `chars` characters of `text`.
pub(crate) fn head(text: &str, chars: usize) -> &str {
    match text.char_indices().nth(chars) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The last `chars` characters of `text`.
pub(crate) fn tail(text: &str, chars: usize) -> &str {
    if chars == 0 {
        return "";
    }
    match text.char_indices().rev().nth(chars - 1) {
        Some((start, _)) => &text[start..],
        None => text,
    }
}

/// One line: what follows a line break would otherwise start a line of its own.
pub(crate) fn one_line(text: &str) -> String {
    text.split(['\n', '\r'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_count_characters() {
        assert_eq!(head("§2 is ok", 2), "§2");
        assert_eq!(head("§", 5), "§");
        assert_eq!(tail("is §2", 2), "§2");
        assert_eq!(tail("§", 5), "§");
        assert_eq!(tail("abc", 0), "");
        assert_eq!(one_line("a\n\r b"), "a b");
    }
}
