//! The examples of a spec.md: pairs of a call and its envelope, as fenced JSON under `## Examples`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One example.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Example {
    /// Project of the operation that is called; none for the spec's own.
    pub(crate) project: Option<String>,
    pub(crate) op: String,
    pub(crate) overrides: Value,
    /// `{"data", "error"}`, with placeholders.
    pub(crate) reply: Value,
}

/// The examples in order.
///
/// # Errors
/// A block that is no JSON or has no partner, in words for the author.
pub(crate) fn examples(spec: &str) -> Result<Vec<Example>, String> {
    let blocks = blocks(spec)?;
    if !blocks.len().is_multiple_of(2) {
        return Err(format!(
            "examples are pairs of call and reply, and there are {} JSON blocks under `## Examples`",
            blocks.len()
        ));
    }
    let mut examples = Vec::with_capacity(blocks.len() / 2);
    for pair in blocks.chunks_exact(2) {
        let number = examples.len() + 1;
        let op = pair[0]["udf"].as_str();
        let op = op.ok_or_else(|| format!("the call of example {number} names no `udf`"))?;
        let shape = pair[1]
            .as_object()
            .is_some_and(|it| it.contains_key("data") && it.contains_key("error"));
        if !shape {
            return Err(format!("the reply of example {number} is not {{\"data\", \"error\"}}"));
        }
        examples.push(Example {
            project: pair[0]["project"].as_str().map(str::to_owned),
            op: op.to_owned(),
            overrides: pair[0]
                .get("overrides")
                .cloned()
                .unwrap_or_else(|| Value::Object(Map::new())),
            reply: pair[1].clone(),
        });
    }
    Ok(examples)
}

fn blocks(spec: &str) -> Result<Vec<Value>, String> {
    let (mut section, mut block) = (false, None::<String>);
    let mut blocks = Vec::new();
    for line in spec.lines() {
        match &mut block {
            Some(_) if line.trim_end() == "```" => {
                let text = block.take().unwrap_or_default();
                if section {
                    let number = blocks.len() + 1;
                    let value = parse(&text).map_err(|error| {
                        format!("JSON block {number} under `## Examples`: {error}")
                    })?;
                    blocks.push(value);
                }
            }
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
            None if line.trim_end() == "```json" => block = Some(String::new()),
            None if line.starts_with("## ") => section = line.trim_end() == "## Examples",
            None => {}
        }
    }
    Ok(blocks)
}

/// An example may show what is nested deeper than the usual limit.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    if depth(text) > MOST_DEPTH {
        return Err(serde::de::Error::custom("it is nested deeper than any caller reads"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Levels that are read: each takes a part of the stack.
const MOST_DEPTH: usize = 1_100;

/// How deep lists and objects are nested at most.
fn depth(text: &str) -> usize {
    let (mut depth, mut most, mut inside, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'[' | b'{' if !inside => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !inside => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_under_the_heading_are_pairs() {
        let text = "# a\n## Output\n```json\n1\n```\n## Examples\n\nOne.\n\n```json\n{\"udf\": \"a\"}\n```\n\
            ```json\n{\"data\": 1, \"error\": null}\n```\n## More\n```json\n{\"x\": 1}\n```\n";
        let found = examples(text).unwrap();
        let one = Example {
            project: None,
            op: "a".into(),
            overrides: json!({}),
            reply: json!({"data": 1, "error": null}),
        };
        assert_eq!(found, [one]);
    }

    #[test]
    fn what_is_no_example_is_said() {
        for (blocks, want) in [
            (&["{\"udf\": \"a\"}"][..], "pairs"),
            (&["{\"udf\": \"a\"}", "{"], "JSON block 2"),
            (&["{}", "{\"data\": 1, \"error\": null}"], "names no `udf`"),
            (&["{\"udf\": \"a\"}", "1"], "is not {\"data\", \"error\"}"),
        ] {
            let mut text = "## Examples\n".to_owned();
            for block in blocks {
                text.push_str(&format!("```json\n{block}\n```\n"));
            }
            assert!(examples(&text).unwrap_err().contains(want), "{blocks:?}");
        }
        assert_eq!(examples("# nothing\n"), Ok(vec![]));
    }

    #[test]
    fn what_is_nested_too_deep_is_no_answer() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(300)).is_ok());
        assert!(parse(&nested(100_000)).unwrap_err().to_string().contains("nested"));
        assert_eq!(depth(r#"{"a[[": ["\"]]"], "b": []}"#), 2);
    }
}
