//! Request and reply as they stand on the wire (the app-store contract §1, the sql contract §9).
//!
//! Both directions stay text: a parameter that is an object, with lone surrogates or five hundred levels deep, goes to
//! the operation as it was sent, and a reply is put between `{"data":` and `,"error":null}` as it came.

use std::borrow::Cow;
use std::sync::LazyLock;

use json_text::{Json, Kind, Specials, quote};
use memchr::memmem::Finder;

use crate::error::HostError;
use crate::reply::Reply;

/// The largest reply that is sent, in bytes of JSON.
pub const REPLY_LIMIT: usize = 64 << 20;

/// Up to this many keys are compared with each other, which is faster than sorting them.
const FEW: usize = 16;

/// The body of `POST /api/exec/udf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdfRequest {
    /// `op`, `project.op` or `workspace.project.op`, as sent.
    pub udf: String,
    /// Every override that is not null, in the order sent.
    pub overrides: Vec<(String, String)>,
}

impl UdfRequest {
    /// Reads `{"udf": text, "overrides": {…}}`. `overrides` may be absent or null; other members are ignored.
    ///
    /// # Errors
    /// [`HostError::BadRequest`] for a body that is not such an object, naming what was found instead.
    pub fn parse(body: &[u8]) -> Result<Self, HostError> {
        let body = Body::parse(body)?;
        let udf = match body.member("udf") {
            None => {
                return Err(bad(
                    "`udf` is missing: the body is {\"udf\": \"<operation>\", \"overrides\": {…}}",
                ));
            }
            Some(udf) => udf
                .as_str()
                .ok_or_else(|| bad(format!("`udf` must be text, not {}", kind_name(udf))))?,
        };
        if udf.is_empty() {
            return Err(bad("`udf` is empty: name an operation"));
        }
        Ok(Self { overrides: body.texts("overrides")?, udf: udf.into_owned() })
    }
}

/// A request body that is one JSON object, each key at most once.
#[derive(Debug, Clone)]
pub struct Body<'a> {
    members: Vec<(Cow<'a, str>, Json<'a>)>,
}

impl<'a> Body<'a> {
    /// Checks the whole text once; looking at members afterwards decodes only those.
    ///
    /// # Errors
    /// [`HostError::BadRequest`]: not UTF-8, not JSON (with the place), not an object, a key given twice.
    pub fn parse(body: &'a [u8]) -> Result<Self, HostError> {
        Self::parse_named(body, "the body")
    }

    /// [`Body::parse`] for a text that messages call `place`.
    ///
    /// # Errors
    /// As there.
    pub fn parse_named(body: &'a [u8], place: &str) -> Result<Self, HostError> {
        let text = std::str::from_utf8(body).map_err(|error| {
            bad(format!("{place} is not UTF-8 from byte {}", error.valid_up_to()))
        })?;
        if text.trim_ascii().is_empty() {
            return Err(bad(format!("{place} is empty: send a JSON object")));
        }
        let json = Json::parse(text, Specials::Refuse)
            .map_err(|error| bad(format!("{place} is not JSON: {error}")))?;
        Ok(Self { members: members(json, place)? })
    }

    /// All members as parameters, in the manner of [`Body::texts`].
    #[must_use]
    pub fn all_texts(self) -> Vec<(String, String)> {
        texts(self.members)
    }

    /// The member of this name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Json<'a>> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The same body, if the object of this name, where there is one, gives no key twice.
    ///
    /// # Errors
    /// [`HostError::BadRequest`] naming the key.
    pub fn each_key_once(self, name: &str) -> Result<Self, HostError> {
        match self.member(name) {
            Some(object) if object.is_object() => {
                members(object, &format!("`{name}`")).map(|_| self)
            }
            _ => Ok(self),
        }
    }

    /// An object of parameters as texts: a string as it is, null left out, anything else as its JSON text. Empty when
    /// the member is absent or null.
    ///
    /// # Errors
    /// [`HostError::BadRequest`] when the member is no object, or gives a key twice.
    pub fn texts(&self, name: &str) -> Result<Vec<(String, String)>, HostError> {
        let Some(object) = self.member(name) else { return Ok(Vec::new()) };
        match object.kind() {
            Kind::Null => Ok(Vec::new()),
            Kind::Object => Ok(texts(members(object, &format!("`{name}`"))?)),
            Kind::Bool | Kind::Number | Kind::String | Kind::Array => {
                Err(bad(format!("`{name}` must be an object, not {}", kind_name(object))))
            }
        }
    }
}

fn texts(members: Vec<(Cow<'_, str>, Json<'_>)>) -> Vec<(String, String)> {
    members
        .into_iter()
        .filter_map(|(key, value)| Some((key.into_owned(), text_of(value)?)))
        .collect()
}

fn members<'a>(object: Json<'a>, place: &str) -> Result<Vec<(Cow<'a, str>, Json<'a>)>, HostError> {
    if !object.is_object() {
        return Err(bad(format!("{place} must be a JSON object, not {}", kind_name(object))));
    }
    let members: Vec<(Cow<'a, str>, Json<'a>)> = object.fields().collect();
    // Two values for one key mean that sender and reader could disagree about what was asked.
    let twice = if members.len() <= FEW {
        members
            .iter()
            .enumerate()
            .find(|(at, (key, _))| members[..*at].iter().any(|(k, _)| k == key))
            .map(|(_, (key, _))| key.as_ref())
    } else {
        let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_ref()).collect();
        keys.sort_unstable();
        keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    };
    match twice {
        Some(key) => Err(bad(format!("{place} has the key `{}` twice", shortened(key)))),
        None => Ok(members),
    }
}

/// A parameter as the text that operations take; none for null. A lone surrogate in a plain string becomes U+FFFD,
/// since no Rust text can hold it; inside an object or array it is kept.
fn text_of(value: Json<'_>) -> Option<String> {
    match value.kind() {
        Kind::Null => None,
        Kind::String => value.as_str().map(Cow::into_owned),
        Kind::Bool | Kind::Number | Kind::Array | Kind::Object => Some(value.text().to_owned()),
    }
}

/// Which operation is meant by `udf`, addressed by the request's `workspace` and `project` where it does not say.
/// A qualified name wins over the address.
///
/// # Errors
/// [`HostError::BadRequest`] when a part is neither in the name nor in the address, or the name has empty parts.
pub fn qualify<'a>(
    udf: &'a str,
    workspace: Option<&'a str>,
    project: Option<&'a str>,
) -> Result<(&'a str, &'a str, &'a str), HostError> {
    let given = |part: Option<&'a str>, name: &str| {
        part.filter(|part| !part.is_empty()).ok_or_else(|| {
            bad(format!(
                "`{}` needs a {name}: give it as `?workspace=…&project=…`, or write `workspace.project.operation`",
                shortened(udf)
            ))
        })
    };
    let mut parts = udf.split('.');
    let (workspace, project, op) = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(op), None, ..) => (given(workspace, "workspace")?, given(project, "project")?, op),
        (Some(project), Some(op), None, _) => (given(workspace, "workspace")?, project, op),
        (Some(workspace), Some(project), Some(op), None) => (workspace, project, op),
        _ => return Err(bad(format!("`{}` is not `workspace.project.operation`", shortened(udf)))),
    };
    if [workspace, project, op].iter().any(|part| part.is_empty()) {
        return Err(bad(format!("`{}` is not `workspace.project.operation`", shortened(udf))));
    }
    Ok((workspace, project, op))
}

/// Parameters, and apart from them `app_dir`, which every operation accepts and none sees (the app-store contract §2).
#[must_use]
pub fn split_app_dir(
    mut overrides: Vec<(String, String)>,
) -> (Vec<(String, String)>, Option<String>) {
    let at = overrides.iter().position(|(name, _)| name == "app_dir");
    let app_dir = at.map(|at| overrides.remove(at).1);
    (overrides, app_dir)
}

/// `{"data":…,"error":null}`. Number tokens that JSON does not have (`NaN` and the infinities, which other programs
/// may have left in a file) become null.
///
/// # Errors
/// [`HostError::BadRequest`] when the reply is over `limit` bytes.
pub fn render_reply(reply: &Reply, limit: usize) -> Result<Vec<u8>, HostError> {
    const HEAD: &str = "{\"data\":";
    const TAIL: &str = ",\"error\":null}";
    let len = reply.json_len();
    if len > limit {
        return Err(bad(format!(
            "the reply of {len} bytes is over the limit of {limit}: ask for less, with the operation's own limits"
        )));
    }
    let mut out = String::with_capacity(HEAD.len() + len + TAIL.len());
    out.push_str(HEAD);
    reply.write_json(&mut out);
    if let Some(plain) = without_specials(&out[HEAD.len()..]) {
        out.truncate(HEAD.len());
        out.push_str(&plain);
    }
    out.push_str(TAIL);
    Ok(out.into_bytes())
}

/// `{"data":<data>,"error":null}` around a text that is valid JSON.
#[must_use]
pub fn render_data(data: &str) -> Vec<u8> {
    format!("{{\"data\":{data},\"error\":null}}").into_bytes()
}

/// `{"data":null,"error":"…"}`.
#[must_use]
pub fn render_error(message: &str) -> Vec<u8> {
    let mut out = String::with_capacity(message.len() + 32);
    out.push_str("{\"data\":null,\"error\":");
    quote(message, &mut out);
    out.push('}');
    out.into_bytes()
}

/// The text with `NaN`, `Infinity` and `-Infinity` outside of strings as null; none if it has no such token, which two
/// fast searches tell for nearly every reply.
fn without_specials(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    static TOKENS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new("NaN"), Finder::new("Infinity")]);
    if TOKENS.iter().all(|token| token.find(bytes).is_none()) {
        return None;
    }
    let mut out: Option<String> = None;
    let (mut at, mut copied) = (0, 0);
    while let Some(step) = memchr::memchr3(b'"', b'N', b'I', &bytes[at..]) {
        at += step;
        if bytes[at] == b'"' {
            at = end_of_string(bytes, at);
            continue;
        }
        let start = if at > 0 && bytes[at - 1] == b'-' { at - 1 } else { at };
        let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
        out.push_str(&text[copied..start]);
        out.push_str("null");
        at += if bytes[at] == b'N' { "NaN".len() } else { "Infinity".len() };
        copied = at;
    }
    out.map(|mut out| {
        out.push_str(&text[copied..]);
        out
    })
}

/// The position after the string that starts at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(step) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += step;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at = (at + 2).min(bytes.len());
    }
    bytes.len()
}

fn kind_name(value: Json<'_>) -> &'static str {
    match value.kind() {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "text",
        Kind::Array => "a list",
        Kind::Object => "an object",
    }
}

/// A caller's own text as it may stand in a message: one line, not endless.
fn shortened(text: &str) -> Cow<'_, str> {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

fn bad(message: impl Into<String>) -> HostError {
    HostError::BadRequest { message: message.into() }
}

#[cfg(test)]
mod tests;
