//! [`Given`]: options as they stood on the command line, for a command that shows another one.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// An option that was given. What variables or files say is not: that holds for the next command as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    /// With its dashes.
    pub(super) name: String,
    /// None for a flag.
    pub(super) value: Option<String>,
}

/// The options that go with every command below the one that declares them, as often as they were given.
pub(super) fn options(command: &Command, matches: &ArgMatches) -> Vec<Given> {
    let (mut command, mut matches) = (command, matches);
    let mut known: Vec<&Arg> = Vec::new();
    loop {
        known.extend(command.get_arguments().filter(|arg| arg.is_global_set()));
        // The parser hands such options down to the last command.
        let below = matches.subcommand();
        match below.and_then(|(name, below)| Some((command.find_subcommand(name)?, below))) {
            Some(below) => (command, matches) = below,
            None => break,
        }
    }
    let typed =
        |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let given = |arg: &Arg| -> Vec<Given> {
        let name = format!("--{}", arg.get_long().unwrap_or_default());
        if !arg.get_action().takes_values() {
            return vec![Given { name, value: None }];
        }
        let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
        let value = |value: &std::ffi::OsStr| Some(value.to_string_lossy().into_owned());
        values.map(|word| Given { name: name.clone(), value: value(word) }).collect()
    };
    known.into_iter().filter(typed).flat_map(given).collect()
}
