//! The secret of one run: made at the start, told once on standard output, compared in constant time.

use std::fmt;

use http::header::{AUTHORIZATION, HeaderMap};
use subtle::ConstantTimeEq;

use super::query;

/// 256 random bits as 64 hexadecimal digits. `Debug` shows none of them, so that no log can.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A fresh token from the system's random source; fails only where the machine has none.
    pub fn mint() -> Result<Token, getrandom::Error> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Token(hex(&bytes)))
    }

    /// The digits, for the handshake line. They go nowhere else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the request carries this token, as `?t=` or as `Authorization: Bearer`. One right credential is enough:
    /// a client may send a stale header of its own beside the query form.
    pub(crate) fn admits(&self, query: Option<&str>, headers: &HeaderMap) -> bool {
        let by_query = query::values(query, "t").any(|value| self.equals(value.as_bytes()));
        by_query
            || headers.get_all(AUTHORIZATION).iter().any(|credentials| {
                let credentials = credentials.as_bytes();
                credentials.split_at_checked(7).is_some_and(|(scheme, token)| {
                    scheme.eq_ignore_ascii_case(b"bearer ") && self.equals(token)
                })
            })
    }

    fn equals(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}
