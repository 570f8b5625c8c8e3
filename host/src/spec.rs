//! [`Spec`]: what a `spec.md` says that can be checked: its sections and the Inputs table.
//!
//! The one reader of that table. `doctor` compares it with what the plugin declares, and so do the tests of the
//! shipped operations.

use serde_json::Value;

/// Sections that every `spec.md` has, as level-two headings. Spelling is checked, order is not.
pub const SECTIONS: [&str; 5] = ["Inputs", "Output", "Errors", "Collections", "Examples"];

/// The checkable part of a `spec.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Level-two headings in order.
    pub sections: Vec<String>,
    /// Rows of the table in section Inputs.
    pub inputs: Vec<Input>,
}

/// One row of the Inputs table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// From the first column, without its code quotes.
    pub name: String,
    /// From the column `Default`, without code quotes; none if there is no such column.
    pub default: Option<String>,
}

impl Spec {
    /// Reads the text of a `spec.md`. Anything that is no heading and no table row is prose.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut spec = Self { sections: Vec::new(), inputs: Vec::new() };
        let mut table: Vec<Vec<String>> = Vec::new();
        let (mut fenced, mut ended) = (false, false);
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            if fenced {
                continue;
            }
            if let Some(heading) = line.strip_prefix("## ") {
                spec.sections.push(heading.trim().to_owned());
            } else if spec.sections.last().is_some_and(|section| section == "Inputs") && !ended {
                match cells(line) {
                    Some(cells) => table.push(cells),
                    // The first table is the one that counts.
                    None => ended = !table.is_empty(),
                }
            }
        }
        let mut rows = table.into_iter();
        let header = rows.next().unwrap_or_default();
        let default = header.iter().position(|cell| cell.eq_ignore_ascii_case("default"));
        spec.inputs = rows
            .filter(|row| !row.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':'))))
            .filter_map(|row| {
                let default = default.and_then(|at| row.get(at)).map(|cell| plain(cell));
                Some(Input { name: plain(row.first()?), default })
            })
            // `app_dir` belongs to every operation and to no descriptor.
            .filter(|input| {
                input.name != "app_dir" && !input.name.is_empty() && input.name != "none"
            })
            .collect();
        spec
    }

    /// Where this spec and a plugin's descriptor (`{"params": [{"name", "default", "required"}, …]}`) disagree, one
    /// sentence each. Empty means that they agree.
    #[must_use]
    pub fn drift(&self, descriptor: &Value) -> Vec<String> {
        let mut drift: Vec<String> = SECTIONS
            .iter()
            .filter(|section| !self.sections.iter().any(|own| own == *section))
            .map(|section| format!("spec.md has no section `## {section}`"))
            .collect();
        let none = Vec::new();
        let params = descriptor["params"].as_array().unwrap_or(&none);
        let name = |param: &Value| param["name"].as_str().unwrap_or_default().to_owned();
        for param in params {
            let name = name(param);
            let Some(input) = self.inputs.iter().find(|input| input.name == name) else {
                drift.push(format!(
                    "the plugin takes `{name}`, which the Inputs table does not list"
                ));
                continue;
            };
            let Some(written) = &input.default else { continue };
            let declared = default_of(param);
            if !same_default(written, &declared) {
                drift.push(format!("`{name}` defaults to {declared} in the plugin and to {written} in the Inputs table"));
            }
        }
        for input in &self.inputs {
            if !params.iter().any(|param| name(param) == input.name) {
                drift.push(format!(
                    "the Inputs table lists `{}`, which the plugin does not take",
                    input.name
                ));
            }
        }
        drift
    }
}

/// `required`, or the default as JSON text.
fn default_of(param: &Value) -> String {
    if param["required"].as_bool() == Some(true) {
        "required".to_owned()
    } else {
        param["default"].to_string()
    }
}

/// A table may write the text `pending` bare or quoted; absent, `none`, `null`, an empty cell and `""` all mean "empty".
fn same_default(written: &str, declared: &str) -> bool {
    fn bare(text: &str) -> &str {
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        if matches!(text, "none" | "null" | "absent" | "–" | "—" | "-" | "empty") {
            ""
        } else {
            text
        }
    }
    bare(written) == bare(declared)
}

/// The cells of a table row; none for any other line. `\|` is a bar inside a cell.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut characters = inner.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&'|') => {
                characters.next();
                cells.last_mut()?.push('|');
            }
            '|' => cells.push(String::new()),
            _ => cells.last_mut()?.push(character),
        }
    }
    Some(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

fn plain(cell: &str) -> String {
    cell.trim_matches(|c| matches!(c, '`' | '*')).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "# get_card\n\nOne card.\n\n## Inputs\n\nText throughout.\n\n\
        | Name | Type | Default | Meaning |\n|---|:--|---|---|\n\
        | `id` | text | `\"\"` | the card \\| its id |\n| `status` | text | `pending` | x |\n\
        | `ref` | text | required | x |\n| `app_dir` | text | – | x |\n\n\
        | Needs | Does |\n|---|---|\n| `x` | y |\n\n\
        ## Output\n```json\n## Errors\n| a | b |\n```\n## Errors\n## Collections\n## Examples\n| not | inputs |\n";

    #[test]
    fn reads_sections_and_the_inputs_table_and_nothing_else() {
        let spec = Spec::parse(TEXT);
        assert_eq!(spec.sections, SECTIONS);
        let input =
            |name: &str, default: &str| Input { name: name.into(), default: Some(default.into()) };
        assert_eq!(
            spec.inputs,
            [input("id", "\"\""), input("status", "pending"), input("ref", "required")]
        );
    }

    #[test]
    fn agreement_is_silent_and_each_disagreement_is_named() {
        let spec = Spec::parse(TEXT);
        let param = |name: &str, default: Value, required: bool| json!({"name": name, "default": default, "required": required});
        let same = json!({"params": [
            param("id", json!(""), false), param("status", json!("pending"), false), param("ref", json!(null), true),
        ]});
        assert_eq!(spec.drift(&same), Vec::<String>::new());
        let other =
            json!({"params": [param("id", json!("x"), false), param("kind", json!(""), false)]});
        assert_eq!(
            spec.drift(&other),
            [
                "`id` defaults to \"x\" in the plugin and to \"\" in the Inputs table",
                "the plugin takes `kind`, which the Inputs table does not list",
                "the Inputs table lists `status`, which the plugin does not take",
                "the Inputs table lists `ref`, which the plugin does not take",
            ]
        );
        assert_eq!(Spec::parse("# x\n## Inputs\nNone.\n").drift(&json!({"params": []})).len(), 4);
    }
}
