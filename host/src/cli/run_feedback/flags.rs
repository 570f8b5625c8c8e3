//! Flags from what an operation declares: `--run-id X` is parameter `run_id`.

use sdk::host::Descriptor;

/// One flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flag {
    /// Without the dashes.
    name: String,
    /// The parameter it stands for.
    param: String,
    /// Whether it may stand alone and then means `true`.
    switch: bool,
}

/// The flags of an operation. `--type` stands for `feedback_type` where there is one.
pub(super) fn of(descriptor: &Descriptor) -> Vec<Flag> {
    let flag = |name: &str, param: &str, switch| Flag {
        name: name.to_owned(),
        param: param.to_owned(),
        switch,
    };
    let mut flags = Vec::new();
    for param in &descriptor.params {
        flags.push(flag(&param.name.replace('_', "-"), &param.name, param.json_type == "boolean"));
        if param.name == "feedback_type" {
            flags.push(flag("type", &param.name, false));
        }
    }
    flags
}

/// Turns arguments into parameters. A value is the next argument, whatever it looks like; of a flag given twice the last
/// counts, as in the scripts.
///
/// # Errors
/// What is wrong, for people.
pub(super) fn parse(flags: &[Flag], arguments: &[String]) -> Result<Vec<(String, String)>, String> {
    let mut params: Vec<(String, String)> = Vec::new();
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        let name = argument.strip_prefix("--").unwrap_or_default();
        let flag = flags.iter().find(|flag| flag.name == name).ok_or_else(|| {
            let known: Vec<String> = flags.iter().map(|flag| format!("--{}", flag.name)).collect();
            format!("unknown argument {argument:?}; known: {}", known.join(" "))
        })?;
        let text = if flag.switch {
            rest.next_if(|next| matches!(next.as_str(), "true" | "false"))
                .map_or("true", String::as_str)
        } else {
            rest.next().ok_or_else(|| format!("--{name} needs a value"))?
        };
        params.retain(|(known, _)| *known != flag.param);
        params.push((flag.param.clone(), text.to_owned()));
    }
    Ok(params)
}

/// One line of help.
pub(super) fn usage(op: &str, flags: &[Flag]) -> String {
    let mut line = format!("Usage: udf-host run-feedback {op}");
    for flag in flags {
        let value = if flag.switch { "[true|false]" } else { "VALUE" };
        line.push_str(&format!(" [--{} {value}]", flag.name));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> Vec<Flag> {
        let text = r#"{"interface":1,"op":"x","panic":"unwind","sdk":"0.1.0","params":[
            {"name":"run_id","type":"string"},{"name":"feedback_type","type":"string"},
            {"name":"replace","type":"boolean"},{"name":"message","type":"string"}]}"#;
        of(&Descriptor::parse(text.as_bytes()).unwrap())
    }

    #[track_caller]
    fn check(line: &[&str], want: Result<&[(&str, &str)], &str>) {
        let arguments: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        match (parse(&flags(), &arguments), want) {
            (Ok(params), Ok(want)) => {
                let params: Vec<(&str, &str)> =
                    params.iter().map(|(name, text)| (&**name, &**text)).collect();
                assert_eq!(params, want, "{line:?}");
            }
            (Err(why), Err(want)) => assert!(why.contains(want), "{why}"),
            (got, want) => panic!("{line:?}: {got:?}, wanted {want:?}"),
        }
    }

    #[test]
    fn flags_become_parameters() {
        check(
            &["--run-id", "r", "--message", "--replace"],
            Ok(&[("run_id", "r"), ("message", "--replace")]),
        );
        check(&["--message", ""], Ok(&[("message", "")]));
        check(&["--type", "a", "--feedback-type", "b"], Ok(&[("feedback_type", "b")]));
        check(&["--replace", "--run-id", "r"], Ok(&[("replace", "true"), ("run_id", "r")]));
        check(&["--replace", "false"], Ok(&[("replace", "false")]));
    }

    #[test]
    fn what_is_not_a_flag_is_refused() {
        check(&["--nope", "1"], Err("unknown argument \"--nope\"; known: --run-id"));
        check(&["r"], Err("unknown argument"));
        check(&["-run-id", "r"], Err("unknown argument"));
        check(&["--run_id", "r"], Err("unknown argument"));
        check(&["--run-id=r"], Err("unknown argument"));
        check(&["--run-id"], Err("--run-id needs a value"));
    }

    #[test]
    fn help_is_one_line() {
        let want = "Usage: udf-host run-feedback ask [--run-id VALUE] [--feedback-type VALUE] [--type VALUE] [--replace [true|false]] [--message VALUE]";
        assert_eq!(usage("ask", &flags()), want);
    }
}
