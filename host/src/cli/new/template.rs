//! The files of a new operation.

pub(super) mod workflow;

/// `project.toml`: everything in it is optional.
pub(super) const PROJECT: &str = "\
# workspace = \"default\"   # the first part of `workspace.project.operation`

# [udfs.<operation>]
# timeout = \"30s\"         # what one call may take
";

pub(super) fn cargo(package: &str) -> String {
    format!(
        "[package]
name = \"{package}\"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
publish.workspace = true

[lints]
workspace = true

[lib]
crate-type = [\"cdylib\"]
doctest = false

[dependencies]
sdk.workspace = true

[dev-dependencies]
sdk = {{ workspace = true, features = [\"testing\"] }}
"
    )
}

pub(super) fn library(op: &str) -> String {
    format!(
        "//! `{op}`: a greeting. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Greets `name`.
#[udf]
fn {op}(_ctx: &Context, #[arg(default = \"world\")] name: &str) -> Result<Reply, UdfError> {{
    Ok(Reply::value(&json!({{\"greeting\": format!(\"Hello, {{name}}!\")}})))
}}

#[cfg(test)]
mod tests {{
    use sdk::testing::TestHost;

    use super::*;

    #[test]
    fn greets_by_name_and_without_one() {{
        let host = TestHost::new();
        for (params, want) in [(&[(\"name\", \"you\")][..], \"Hello, you!\"), (&[], \"Hello, world!\")] {{
            assert_eq!(host.call_json(UDF, params), json!({{\"greeting\": want}}));
        }}
    }}
}}
"
    )
}

pub(super) fn spec(project: &str, op: &str) -> String {
    format!(
        "# {op}

Greets by name.

## Inputs

| Name | Type | Default | Meaning |
|---|---|---|---|
| `name` | string | `\"world\"` | whom to greet |

## Output

`greeting`: the sentence.

```json
{{\"greeting\": \"Hello, world!\"}}
```

## Errors

None.

## Collections

Reads none, writes none.

## Examples

```json
{{\"project\": \"{project}\", \"udf\": \"{op}\", \"overrides\": {{\"name\": \"you\"}}}}
```

```json
{{\"data\": {{\"greeting\": \"Hello, you!\"}}, \"error\": null}}
```
"
    )
}
