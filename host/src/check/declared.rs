//! What can be seen without a call: the descriptor, and the spec beside it.

use std::collections::BTreeSet;

use sdk::host::ParamDescriptor;

use super::Subject;
use crate::spec::Spec;

/// What is wrong with what the operation says of itself.
pub(super) fn descriptor(subject: &Subject<'_>) -> Vec<String> {
    let it = subject.descriptor;
    let mut faults = Vec::new();
    if it.doc.trim().is_empty() {
        faults.push(
            "it has no doc comment: nobody who finds it in a list knows what it does".to_owned(),
        );
    }
    twice("parameter", it.params.iter().map(|param| &*param.name), &mut faults);
    it.params.iter().for_each(|param| parameter(param, &mut faults));
    for (what, names) in [("reads", &it.reads), ("writes", &it.writes), ("logs", &it.logs)] {
        twice(what, names.iter().map(String::as_str), &mut faults);
        for name in names.iter().filter(|name| !is_plain(name)) {
            faults.push(format!(
                "{what}: `{name}` is no name of a collection or folder of the store"
            ));
        }
    }
    for call in &it.calls {
        if !matches!(call.split('.').count(), 2 | 3) || call.split('.').any(str::is_empty) {
            faults.push(format!(
                "calls: `{call}` is neither `project.op` nor `workspace.project.op`"
            ));
        } else if !subject.callees.contains_key(call) {
            faults.push(format!("calls: there is no `{call}` here that could be called"));
        }
    }
    twice("column", it.columns.iter().map(|column| &*column.name), &mut faults);
    for column in
        it.columns.iter().filter(|column| !matches!(&*column.kind, "s" | "i" | "f" | "b" | "j"))
    {
        faults.push(format!("column `{}` has the unknown type `{}`", column.name, column.kind));
    }
    faults
}

fn parameter(param: &ParamDescriptor, faults: &mut Vec<String>) {
    let name = &param.name;
    if name == "app_dir" {
        faults.push("`app_dir` is the host's own parameter".to_owned());
    }
    if !is_plain(name) {
        faults.push(format!("`{name}` is no name that can be written in a query"));
    }
    let default = param.default.as_deref().filter(|text| !text.is_empty());
    let fits = match &*param.json_type {
        "string" => true,
        "boolean" => default.is_none_or(|text| matches!(text, "true" | "false" | "1" | "0")),
        "integer" => default.is_none_or(|text| text.parse::<i128>().is_ok()),
        "number" => default.is_none_or(|text| text.parse::<f64>().is_ok()),
        "json" => default.is_none_or(|text| super::examples::parse(text).is_ok()),
        other => {
            faults.push(format!("`{name}` has the unknown type `{other}`"));
            true
        }
    };
    if !fits {
        let default = default.unwrap_or_default();
        faults.push(format!(
            "`{name}` is of type {} and its default is `{default}`",
            param.json_type
        ));
    }
    if param.required && param.default.is_some() {
        faults.push(format!("`{name}` is required and has a default"));
    }
}

fn twice<'a>(what: &str, names: impl Iterator<Item = &'a str>, faults: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for name in names.filter(|name| !seen.insert(*name)) {
        faults.push(format!("{what} `{name}` is there twice"));
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Where the spec is incomplete or says something else than the operation.
pub(super) fn spec(subject: &Subject<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut lines = subject.spec.lines().map(str::trim).filter(|line| !line.is_empty());
    let title = lines.next().unwrap_or_default();
    let op = &*subject.address.op;
    if title.strip_prefix("# ").map(|title| title.trim_matches('`').trim()) != Some(op) {
        faults.push(format!(
            "spec.md begins with `{}`, not with `# {op}`",
            title.chars().take(60).collect::<String>()
        ));
    }
    if lines.next().is_none_or(|line| line.starts_with('#')) {
        faults.push("spec.md says no purpose below its title".to_owned());
    }
    let collections = section(subject.spec, "Collections");
    let it = subject.descriptor;
    let touched: BTreeSet<&String> = it.reads.iter().chain(&it.writes).chain(&it.logs).collect();
    for name in touched {
        if !mentions(&collections, name) {
            faults.push(format!(
                "the section Collections does not name `{name}`, which the operation declares"
            ));
        }
    }
    match serde_json::to_value(subject.descriptor) {
        Ok(descriptor) => faults.extend(Spec::parse(subject.spec).drift(&descriptor)),
        Err(error) => {
            faults.push(format!("what the operation says of itself has no JSON form: {error}"))
        }
    }
    faults
}

/// The lines below this heading of the second level.
fn section(spec: &str, heading: &str) -> String {
    let lines = spec.lines().skip_while(|line| line.strip_prefix("## ") != Some(heading)).skip(1);
    lines.take_while(|line| !line.starts_with("## ")).collect::<Vec<_>>().join("\n")
}

/// Whether the name stands there as code, alone or as the beginning of a path.
fn mentions(text: &str, name: &str) -> bool {
    let code = text.split('`').skip(1).step_by(2);
    let mut names = code.map(|code| code.split('/').next().unwrap_or_default());
    names.any(|code| code == name)
}
