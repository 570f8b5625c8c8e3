//! `[settings]` of a `project.toml`: what a project lets its users choose. The host hands the texts on and knows none.

use std::io::ErrorKind;
use std::path::Path;

/// The text of a setting; `None` if the project has no such file, table or key.
///
/// # Errors
/// What is wrong with the file, in words for its author.
pub(crate) fn read(project: &Path, name: &str) -> Result<Option<String>, String> {
    let text = match super::text_file::read(&project.join("project.toml")) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read project.toml: {error}")),
    };
    let table: toml::Table =
        text.parse().map_err(|_| "project.toml is not TOML: `udf-host list` says where")?;
    match table.get("settings").map(check).transpose()?.and_then(|settings| settings.get(name)) {
        Some(toml::Value::String(text)) => Ok(Some(text.clone())),
        _ => Ok(None),
    }
}

/// The table, if all its values are texts.
///
/// # Errors
/// What is wrong, in words for the author of the file.
pub(crate) fn check(settings: &toml::Value) -> Result<&toml::Table, String> {
    let table = settings.as_table().ok_or("`settings` must be a table of texts")?;
    match table.iter().find(|(_, value)| !value.is_str()) {
        Some((name, value)) => Err(format!("`settings.{name} = {value}` must be a text in quotes")),
        None => Ok(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_text_of_its_project() {
        let project = tempfile::tempdir().unwrap();
        assert_eq!(read(project.path(), "colour"), Ok(None), "no file");
        for (text, want) in [
            ("", Ok(None)),
            ("[settings]\ncolour = \"red\"", Ok(Some("red".to_owned()))),
            ("[settings]\nsize = \"red\"", Ok(None)),
            ("settings = 1", Err("`settings` must be a table of texts".to_owned())),
            (
                "[settings]\ncolour = 3",
                Err("`settings.colour = 3` must be a text in quotes".to_owned()),
            ),
            ("[", Err("project.toml is not TOML: `udf-host list` says where".to_owned())),
        ] {
            #[expect(clippy::disallowed_methods, reason = "a test lays out a project by hand")]
            std::fs::write(project.path().join("project.toml"), text).unwrap();
            assert_eq!(read(project.path(), "colour"), want, "{text}");
        }
    }
}
