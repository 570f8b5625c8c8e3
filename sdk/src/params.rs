use std::collections::HashMap;
use std::fmt::Write;

use serde::de::DeserializeOwned;

use crate::descriptor::{ParamSpec, UdfSpec};
use crate::error::UdfError;
use crate::json::JsonText;
use crate::wire::CallFrame;

mod fields;

pub use fields::FieldNames;

/// How many characters of a bad value an error repeats.
const SHOWN: usize = 60;

/// A type that a parameter of an operation can have. Every parameter arrives as a text; `""` is the
/// type's zero value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a parameter",
    label = "not a parameter type",
    note = "parameters are `&str`, `String`, `bool`, integers, `f64`, `Json<T>`, `JsonText`, or `Option` of one of these; take a structure as `Json<T>` with `T: serde::Deserialize`"
)]
pub trait FromParam<'a>: Sized {
    /// The JSON type a caller may send, as the descriptor states it.
    const JSON_TYPE: &'static str;
    /// Whether the parameter may be left out without a default.
    const OPTIONAL: bool = false;

    /// Reads the text.
    ///
    /// # Errors
    /// The form that was expected, as a noun phrase: "a whole number from 0 to 255".
    fn from_param(text: &'a str) -> Result<Self, String>;
}

impl<'a> FromParam<'a> for &'a str {
    const JSON_TYPE: &'static str = "string";
    fn from_param(text: &'a str) -> Result<Self, String> {
        Ok(text)
    }
}

impl FromParam<'_> for String {
    const JSON_TYPE: &'static str = "string";
    fn from_param(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl FromParam<'_> for bool {
    const JSON_TYPE: &'static str = "boolean";
    fn from_param(text: &str) -> Result<Self, String> {
        match text {
            "" | "false" => Ok(false),
            "true" => Ok(true),
            _ => Err("`true` or `false`".to_owned()),
        }
    }
}

macro_rules! integer_params {
    ($($integer:ty)*) => {$(
        impl FromParam<'_> for $integer {
            const JSON_TYPE: &'static str = "integer";
            fn from_param(text: &str) -> Result<Self, String> {
                if text.is_empty() {
                    return Ok(0);
                }
                text.parse()
                    .map_err(|_| format!("a whole number from {} to {}", Self::MIN, Self::MAX))
            }
        }
    )*};
}
integer_params!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! float_params {
    ($($float:ty)*) => {$(
        impl FromParam<'_> for $float {
            const JSON_TYPE: &'static str = "number";
            fn from_param(text: &str) -> Result<Self, String> {
                if text.is_empty() {
                    return Ok(0.0);
                }
                // `nan` and `inf` parse, but no JSON can hold them (the app-store contract §11, S16).
                text.parse()
                    .ok()
                    .filter(|number: &$float| number.is_finite())
                    .ok_or_else(|| "a finite number".to_owned())
            }
        }
    )*};
}
float_params!(f32 f64);

/// Absent, `null` and `""` are `None`.
impl<'a, T: FromParam<'a>> FromParam<'a> for Option<T> {
    const JSON_TYPE: &'static str = T::JSON_TYPE;
    const OPTIONAL: bool = true;
    fn from_param(text: &'a str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::from_param(text).map(Some) }
    }
}

/// `""` is `null`.
impl FromParam<'_> for JsonText {
    const JSON_TYPE: &'static str = "json";
    fn from_param(text: &str) -> Result<Self, String> {
        Self::parse(if text.is_empty() { "null" } else { text })
            .map_err(|error| format!("JSON ({error})"))
    }
}

/// A parameter that is read as JSON into `T`; `""` is the first of `null`, `[]`, `{}`, `""`, `0` and `false`
/// that is a `T`: no list is an empty list. For values that are only passed on, [`JsonText`] keeps every
/// digit and takes any depth.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Json<T>(pub T);

const ZEROS: [&str; 6] = ["null", "[]", "{}", "\"\"", "0", "false"];

impl<T: DeserializeOwned> FromParam<'_> for Json<T> {
    const JSON_TYPE: &'static str = "json";
    fn from_param(text: &str) -> Result<Self, String> {
        let zero = || ZEROS.iter().find_map(|zero| serde_json::from_str(zero).ok());
        match if text.is_empty() { zero() } else { None } {
            Some(zero) => Ok(Self(zero)),
            None => serde_json::from_str(text)
                .map(Self)
                .map_err(|error| format!("JSON of the documented form ({error})")),
        }
    }
}

impl<T> std::ops::Deref for Json<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The parameters of one call as a host passes them: names and texts, in the order given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params {
    pairs: Vec<(String, String)>,
}

impl Params {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a parameter, replacing one of the same name.
    pub fn insert(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let (name, text) = (name.into(), text.into());
        match self.pairs.iter_mut().find(|(known, _)| *known == name) {
            Some(pair) => pair.1 = text,
            None => self.pairs.push((name, text)),
        }
    }

    /// The text of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, text)| text)
    }

    /// Takes a parameter out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.remove(at).1)
    }

    /// Names and texts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// What crosses to the plugin.
    pub fn frame(&self) -> CallFrame<'_> {
        CallFrame { params: self.iter().collect() }
    }
}

impl<N: Into<String>, T: Into<String>> FromIterator<(N, T)> for Params {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(pairs: I) -> Self {
        const FEW: usize = 16;
        let mut params = Self::new();
        // Where the names stand, once there are too many to look at each.
        let mut places: HashMap<String, usize> = HashMap::new();
        for (name, text) in pairs {
            let (name, text) = (name.into(), text.into());
            let len = params.pairs.len();
            if len < FEW {
                params.insert(name, text);
                continue;
            }
            if places.is_empty() {
                let known = params.pairs.iter().zip(0..);
                places = known.map(|((name, _), at)| (name.clone(), at)).collect();
            }
            match *places.entry(name.clone()).or_insert(len) {
                at if at < len => params.pairs[at].1 = text,
                _ => params.pairs.push((name, text)),
            }
        }
        params
    }
}

/// The parameters of one call inside the plugin, checked against what the operation declares.
#[derive(Debug)]
pub struct Arguments<'a> {
    given: Vec<(&'a str, &'a str)>,
    spec: &'static UdfSpec,
}

impl<'a> Arguments<'a> {
    /// Refuses a name the operation does not declare.
    ///
    /// # Errors
    /// The message names the parameter and the allowed ones.
    pub fn new(frame: CallFrame<'a>, spec: &'static UdfSpec) -> Result<Self, UdfError> {
        for (name, _) in &frame.params {
            if !spec.params.iter().any(|param| param.name == *name) {
                return Err(unknown_parameter(name, spec));
            }
        }
        Ok(Self { given: frame.params, spec })
    }

    /// The argument of a declared parameter: the given text, else the default.
    ///
    /// # Errors
    /// It is required and missing, or its text is not of the type's form.
    pub fn get<T: FromParam<'a>>(&self, param: &'static ParamSpec) -> Result<T, UdfError> {
        let given = self.given.iter().find(|(name, _)| *name == param.name);
        let text = match (given, param.default) {
            (Some((_, text)), _) => *text,
            (None, Some(default)) => default,
            (None, None) => {
                return Err(UdfError::bad_parameter(format!(
                    "`{}` needs the parameter `{}` ({})",
                    self.spec.op, param.name, param.json_type
                )));
            }
        };
        T::from_param(text).map_err(|expected| {
            UdfError::bad_parameter(format!(
                "the parameter `{}` is `{}`, expected {expected}",
                param.name,
                shortened(text)
            ))
        })
    }
}

fn unknown_parameter(name: &str, spec: &UdfSpec) -> UdfError {
    let mut message = format!("`{}` has no parameter `{}`; ", spec.op, shortened(name));
    if spec.params.is_empty() {
        message.push_str("it takes only `app_dir`");
    } else {
        message.push_str("it takes ");
        let comma = if spec.params.len() == 1 { " " } else { ", " };
        for param in spec.params {
            // Writing to a string does not fail.
            let _ = write!(message, "`{}`{comma}", param.name);
        }
        message.push_str("and `app_dir`");
    }
    UdfError::bad_parameter(message)
}

/// The beginning of a text, safe to stand in one line of a message.
fn shortened(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests;
