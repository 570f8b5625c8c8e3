//! The command line as people read it, and as scripts write it.

use clap::CommandFactory;

use super::*;

fn parse(words: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(words.split_whitespace())
}

#[test]
fn every_help_text_stands_as_reviewed() {
    let mut cli = Cli::command();
    cli.build();
    let mut names = vec![vec![]];
    // `help` is the library's own.
    let own = |command: &&clap::Command| command.get_name() != "help";
    for command in cli.get_subcommands().filter(own) {
        names.push(vec![command.get_name().to_owned()]);
        for below in command.get_subcommands().filter(own) {
            names.push(vec![command.get_name().to_owned(), below.get_name().to_owned()]);
        }
    }
    let mut text = String::new();
    for path in names {
        let mut words = vec!["udf-host".to_owned()];
        words.extend(path);
        words.push("--help".to_owned());
        let error = Cli::try_parse_from(&words).unwrap_err();
        text.push_str(&format!("$ {}\n{error}\n", words.join(" ")));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn help_is_a_command_as_well() {
    let shown = |words: &str| {
        let error = parse(words).unwrap_err();
        assert!(!error.use_stderr(), "{words}: {error}");
        error.to_string()
    };
    for (words, option) in [
        ("udf-host help", "udf-host --help"),
        ("udf-host help inbox", "udf-host inbox --help"),
        ("udf-host help inbox answer", "udf-host inbox answer --help"),
        ("udf-host help dev serve", "udf-host dev serve --help"),
    ] {
        assert_eq!(shown(words), shown(option), "{words}");
    }
    // Each number of a command stands in the list of all, which the program itself shows.
    let all = shown("udf-host help");
    let listed = |text: &str| -> Vec<String> {
        let start = text.find("Exit codes:\n").expect("exit codes");
        let lines = text[start..].lines().skip(1).take_while(|line| line.starts_with("  "));
        lines.map(|line| line.trim().split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(listed(&all), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(listed(&all), listed(&shown("udf-host help inbox")));
    assert!(all.contains(exit::HELP), "{all}");
}

#[test]
fn options_stand_before_and_after_the_command() {
    for words in [
        "udf-host --exit-with-parent --port 7 dev serve --app-dir /a",
        "udf-host --app-dir /a dev serve --port 7 --exit-with-parent",
        "udf-host serve --exit-with-parent --port 7 --app-dir /a",
        "udf-host --app-dir /a --port 9 serve --exit-with-parent --port 7",
        "udf-host dev --app-dir /a serve --exit-with-parent --port 7",
        "udf-host dev --app-dir /a --exit-with-parent --port 9 serve --port 7",
    ] {
        let cli = parse(words).unwrap_or_else(|error| panic!("{words}: {error}"));
        let Command::Serve(serve) = cli.command.plain() else { panic!("{words}") };
        let settings = cli.host.settings(cli.serve.or(serve.options));
        assert_eq!((settings.port, settings.exit_with_parent), (Some(7), Some(true)), "{words}");
        assert_eq!(settings.app_dir.as_deref(), Some(std::path::Path::new("/a")), "{words}");
    }
}

#[test]
fn words_that_mean_nothing_are_refused() {
    for words in [
        "udf-host",
        "udf-host nothing",
        "udf-host dev",
        "udf-host serve --port x",
        "udf-host serve --port 70000",
        "udf-host serve --durability maybe",
        "udf-host list extra",
        "udf-host exec",
        "udf-host list --timeout-ms 0",
    ] {
        assert!(parse(words).is_err(), "{words}");
    }
}

#[test]
fn exec_takes_parameters_in_both_forms() {
    for (words, json, params) in [
        ("udf-host exec op a=1 b=", None, &["a=1", "b="][..]),
        ("udf-host exec op --json -", Some("-"), &[]),
        ("udf-host exec op a=1 --json", Some(""), &["a=1"]),
        ("udf-host exec op --json {\"a\":1} b=2", Some("{\"a\":1}"), &["b=2"]),
    ] {
        let Command::Exec(exec) = parse(words).unwrap().command else { panic!("{words}") };
        assert_eq!(exec.json.as_deref(), json, "{words}");
        assert_eq!(exec.params, params, "{words}");
    }
}
