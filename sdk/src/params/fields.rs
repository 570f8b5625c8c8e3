//! [`FieldNames`]: the parameter `fields` of a listing.

use json_text::{Json as JsonRef, Kind, Specials};

use super::FromParam;

/// Names of top-level fields, as [`Page::fields`](crate::Page::fields) takes them. A caller gives them as a comma list,
/// or as a JSON list of texts, which is what a list becomes on its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldNames(String);

impl FromParam<'_> for FieldNames {
    const JSON_TYPE: &'static str = "string";
    fn from_param(text: &str) -> Result<Self, String> {
        // As a comma list it would name no field of any record, and nothing would be left of them.
        if !text.trim_start().starts_with(['[', '{']) {
            return Ok(Self(text.to_owned()));
        }
        names(text)
            .map(|names| Self(names.join(",")))
            .ok_or_else(|| "names of fields: a comma list, or a JSON list of texts".to_owned())
    }
}

/// The members of a JSON list; none if one of them is no name.
fn names(list: &str) -> Option<Vec<String>> {
    let list = JsonRef::parse(list.trim(), Specials::Refuse).ok()?;
    if list.kind() != Kind::Array {
        return None;
    }
    let name = |member: JsonRef<'_>| Some(member.as_str()?.into_owned());
    list.items().map(|member| name(member).filter(|name| !name.contains(','))).collect()
}

impl std::ops::Deref for FieldNames {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_list_in_either_form() {
        for (text, want) in [
            ("", Some("")),
            ("id, status", Some("id, status")),
            ("nothing[0]", Some("nothing[0]")),
            (r#"["id","status"]"#, Some("id,status")),
            (" [ \"*\" , \"cursor\" ] ", Some("*,cursor")),
            (r#"["\u00e9"]"#, Some("é")),
            ("[]", Some("")),
            ("[id,status]", None),
            (r#"["id", 1]"#, None),
            (r#"["a,b"]"#, None),
            (r#"{"id": true}"#, None),
            ("[", None),
        ] {
            let got = FieldNames::from_param(text);
            assert_eq!(got.as_deref().ok(), want, "{text}");
            assert!(want.is_some() || got.is_err_and(|said| said.contains("JSON list")), "{text}");
        }
    }
}
