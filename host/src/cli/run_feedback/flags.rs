//! Flags from what an operation declares: `--run-id X` is parameter `run_id`.

use std::ffi::OsString;

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

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The operation, with these parameters.
    Call(Vec<(String, String)>),
    /// Its flags.
    Help,
}

/// Turns arguments into parameters. A value is the next argument, whatever it looks like, `--help` included; of a flag
/// given twice the last counts, as in the scripts.
///
/// # Errors
/// What is wrong, for people.
pub(super) fn parse(flags: &[Flag], arguments: &[OsString]) -> Result<Asked, String> {
    let mut params: Vec<(String, String)> = Vec::new();
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        if argument == "--help" || argument == "-h" {
            return Ok(Asked::Help);
        }
        let name = argument.to_str().and_then(|text| text.strip_prefix("--")).unwrap_or_default();
        let flag = flags.iter().find(|flag| flag.name == name).ok_or_else(|| {
            let known: Vec<String> = flags.iter().map(|flag| format!("--{}", flag.name)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(" ") };
            format!("unknown argument {argument:?}; known: {known}")
        })?;
        let text = if flag.switch {
            let said = rest.next_if(|next| *next == "true" || *next == "false");
            said.and_then(|said| said.to_str()).unwrap_or("true")
        } else {
            let value = rest.next().ok_or_else(|| format!("--{name} needs a value"))?;
            value
                .to_str()
                .ok_or_else(|| format!("the value of --{name} is not UTF-8: {value:?}"))?
        };
        params.retain(|(known, _)| *known != flag.param);
        params.push((flag.param.clone(), text.to_owned()));
    }
    Ok(Asked::Call(params))
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
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn flags() -> Vec<Flag> {
        let text = r#"{"interface":1,"op":"x","panic":"unwind","sdk":"0.1.0","params":[
            {"name":"run_id","type":"string"},{"name":"feedback_type","type":"string"},
            {"name":"replace","type":"boolean"},{"name":"message","type":"string"}]}"#;
        of(&Descriptor::parse(text.as_bytes()).unwrap())
    }

    #[track_caller]
    fn check(line: &[&str], want: Result<&[(&str, &str)], &str>) {
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        match (parse(&flags(), &arguments), want) {
            (Ok(Asked::Call(params)), Ok(want)) => {
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
    fn help_is_asked_for_where_a_flag_may_stand() {
        for line in [&["--help"][..], &["-h"], &["--run-id", "r", "--replace", "--help"]] {
            let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
            assert_eq!(parse(&flags(), &arguments), Ok(Asked::Help), "{line:?}");
        }
        check(&["--message", "--help"], Ok(&[("message", "--help")]));
        check(&["--message", "-h", "--run-id", "r"], Ok(&[("message", "-h"), ("run_id", "r")]));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let odd = OsString::from_vec(b"caf\xe9".to_vec());
        let fault = parse(&flags(), &["--message".into(), odd.clone()]).unwrap_err();
        assert!(fault.contains("--message is not UTF-8"), "{fault}");
        let fault = parse(&flags(), &[odd]).unwrap_err();
        assert!(fault.contains("unknown argument"), "{fault}");
    }

    #[test]
    fn help_is_one_line() {
        let want = "Usage: udf-host run-feedback ask [--run-id VALUE] [--feedback-type VALUE] [--type VALUE] [--replace [true|false]] [--message VALUE]";
        assert_eq!(usage("ask", &flags()), want);
    }
}
