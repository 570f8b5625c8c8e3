//! What a program printed, as errors of a round: its lines verbatim, bounded in number and length.

use std::io::{Read, Seek, SeekFrom};

/// Lines of one failure, beside the headline.
const LINES: usize = 10;
/// Characters of a line.
const LINE: usize = 480;
/// Bytes that are read at either end of a log.
const END: u64 = 64 * 1024;

/// A headline and the lines of the log that say most: those that speak of an error, in their order, and the last.
pub(crate) fn failure(headline: String, log: &str, name: &str) -> Vec<String> {
    let text = read(log);
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    let mut errors = vec![headline];
    if lines.len() <= LINES {
        errors.extend(lines.iter().map(|line| cut(line)));
        return errors;
    }
    let tells = |line: &str| {
        let line = line.to_ascii_lowercase();
        ["error", "fail", "panic", "fatal", "cannot", "not found"]
            .iter()
            .any(|word| line.contains(word))
    };
    let mut chosen: Vec<usize> =
        (0..lines.len()).filter(|at| tells(lines[*at])).take(LINES - 3).collect();
    let last = lines.len().saturating_sub(LINES - chosen.len())..lines.len();
    chosen.extend(last);
    chosen.sort_unstable();
    chosen.dedup();
    errors.extend(chosen.iter().map(|at| cut(lines[*at])));
    errors.push(format!("… {} lines in all: read_log {name}", lines.len()));
    errors
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A log as text; of a long one the beginning and the end.
pub(crate) fn read(path: &str) -> String {
    let Ok(mut file) = std::fs::File::open(path) else { return String::new() };
    let mut bytes = Vec::new();
    if (&mut file).take(END).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    if length > END {
        let from = length.saturating_sub(END).max(END);
        if from > END {
            bytes.extend_from_slice("\n…\n".as_bytes());
        }
        // A log that shrank meanwhile is shown as far as it was read.
        let _shrank =
            file.seek(SeekFrom::Start(from)).and_then(|_| file.take(END).read_to_end(&mut bytes));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use sdk::testing::TestHost;

    use super::*;

    fn of(text: &str) -> Vec<String> {
        let host = TestHost::new();
        host.seed_file("build.log", text);
        failure("ended with 2".into(), host.app_dir().join("build.log").to_str().unwrap(), "build")
    }

    #[test]
    fn short_output_is_given_whole() {
        assert_eq!(
            of("a\n\n  TS2304 cannot find name Chart\n"),
            ["ended with 2", "a", "  TS2304 cannot find name Chart"]
        );
        assert_eq!(failure("x".into(), "/nowhere", "build"), ["x"]);
    }

    #[test]
    fn long_output_is_bounded_and_keeps_its_errors() {
        let mut text: String = (0..500).map(|n| format!("step {n}\n")).collect();
        text.insert_str(21, &format!("Error: first{}\n", "x".repeat(1000)));
        let errors = of(&text);
        assert_eq!(errors.len(), 12);
        assert!(errors[1].starts_with("Error: first") && errors[1].chars().count() <= LINE + 1);
        assert_eq!(errors[10], "step 499");
        assert!(errors[11].contains("501 lines in all: read_log build"));
        assert!(errors.iter().all(|error| error.chars().count() <= 500));
        let huge = "y".repeat(300_000);
        assert!(of(&format!("first error\n{huge}\nlast\n")).join("\n").contains("last"));
    }
}
