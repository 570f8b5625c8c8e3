//! `GET /metrics`: the numbers of the host and of each operation, in the text format 0.0.4 of Prometheus.
//!
//! Written by hand: the format is a page long, and the counters are here already.

use std::fmt::{Display, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Host;
use crate::plugins::{Entry, EntryView};

/// What the answer says it is.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All numbers of a host.
pub(crate) fn render(host: &Host) -> String {
    let mut page = Page::default();
    of_host(host, &mut page);
    let entries = host.catalog.entries();
    let ops: Vec<Op<'_>> = entries.iter().map(|entry| Op::of(entry)).collect();
    of_operations(&ops, &mut page);
    page.text
}

fn of_host(host: &Host, page: &mut Page) {
    page.family("udf_host_info", Kind::Gauge, "The host's version and process; always 1.");
    let pid = std::process::id().to_string();
    page.sample("udf_host_info", &[("version", env!("CARGO_PKG_VERSION")), ("pid", &pid)], 1);
    let since = host.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    page.gauge(
        "udf_host_start_time_seconds",
        "When the host started, in seconds since 1970.",
        since.as_secs_f64(),
    );
    let up = SystemTime::now().duration_since(host.started).unwrap_or_default();
    page.gauge("udf_host_uptime_seconds", "For how long it has run.", up.as_secs_f64());
    let (running, limit) = host.dispatcher.in_flight();
    page.gauge(
        "udf_host_calls_in_flight",
        "Calls that run now, those that are stuck included.",
        running,
    );
    page.gauge("udf_host_calls_in_flight_limit", "How many may run at one time.", limit);
    let progress = host.catalog.progress();
    page.family("udf_host_operations", Kind::Gauge, "Operations by state.");
    let building = progress.total.saturating_sub(progress.ready + progress.refused);
    for (state, count) in
        [("ready", progress.ready), ("refused", progress.refused), ("building", building)]
    {
        page.sample("udf_host_operations", &[("state", state)], count);
    }
    if let Some(bytes) = resident_bytes() {
        page.gauge("udf_host_resident_memory_bytes", "Memory of the host's process.", bytes);
    }
}

/// One operation and its numbers, all taken at one moment.
struct Op<'a> {
    entry: &'a Entry,
    view: EntryView,
}

impl<'a> Op<'a> {
    fn of(entry: &'a Entry) -> Self {
        Self { entry, view: entry.view() }
    }

    fn labels(&self) -> [(&'static str, &str); 3] {
        [
            ("workspace", &self.view.workspace),
            ("project", &self.view.project),
            ("op", &self.view.op),
        ]
    }

    /// Its own labels and more.
    fn with<'b>(&'b self, more: &[(&'static str, &'b str)]) -> Vec<(&'static str, &'b str)> {
        self.labels().into_iter().chain(more.iter().copied()).collect()
    }
}

fn of_operations(ops: &[Op<'_>], page: &mut Page) {
    let info = "What answers for the operation; always 1.";
    page.family("udf_host_op_info", Kind::Gauge, info);
    for op in ops {
        let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
        let (version, hash) = (text(&op.view.version), text(&op.view.hash));
        let more = [
            ("state", op.view.state),
            ("lane", op.view.lane),
            ("version", &version),
            ("hash", &hash),
        ];
        page.sample("udf_host_op_info", &op.with(&more), 1);
    }
    let built = "When its artifact was built, in seconds since 1970.";
    page.each("udf_host_op_built_time_seconds", Kind::Gauge, built, ops, |op| op.view.built_at);
    let versions = "Builds of it that are open in the host's process and its workers.";
    page.each("udf_host_op_open_versions", Kind::Gauge, versions, ops, |op| Some(op.view.versions));
    let bytes = "The bytes of the files of those builds.";
    page.each("udf_host_op_open_version_bytes", Kind::Gauge, bytes, ops, |op| {
        Some(op.view.version_bytes)
    });
    let calls = "Calls that ended, in whatever way.";
    page.each("udf_host_op_calls_total", Kind::Counter, calls, ops, |op| Some(op.view.calls));
    let errors = "Calls that ended in an error.";
    page.each("udf_host_op_errors_total", Kind::Counter, errors, ops, |op| Some(op.view.errors));
    let stuck = "Calls whose caller was told \"timeout\" and that still run.";
    page.each("udf_host_op_stuck_calls", Kind::Gauge, stuck, ops, |op| Some(op.view.stuck));
    summary(ops, page);
    histogram(ops, page);
}

fn summary(ops: &[Op<'_>], page: &mut Page) {
    let name = "udf_host_op_latency_seconds";
    let help = "What half of the calls, and 99 of 100, took at most since the start.";
    page.family(name, Kind::Summary, help);
    for op in ops {
        let durations = op.entry.stats.durations();
        if durations.count == 0 {
            continue;
        }
        for (quantile, micros) in [("0.5", op.view.p50_us), ("0.99", op.view.p99_us)] {
            if let Some(micros) = micros {
                let seconds = Duration::from_micros(micros).as_secs_f64();
                page.sample(name, &op.with(&[("quantile", quantile)]), seconds);
            }
        }
        page.sample(&format!("{name}_sum"), &op.labels(), durations.sum.as_secs_f64());
        page.sample(&format!("{name}_count"), &op.labels(), durations.count);
    }
}

fn histogram(ops: &[Op<'_>], page: &mut Page) {
    let name = "udf_host_op_duration_seconds";
    page.family(name, Kind::Histogram, "How long calls took, waiting for the operation included.");
    for op in ops {
        let durations = op.entry.stats.durations();
        // An operation that was never called needs none of them: its calls are zero above.
        if durations.count == 0 {
            continue;
        }
        let (bucket, sum, count) =
            (format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count"));
        for (time, within) in &durations.within {
            page.sample(&bucket, &op.with(&[("le", &time.as_secs_f64().to_string())]), within);
        }
        page.sample(&bucket, &op.with(&[("le", "+Inf")]), durations.count);
        page.sample(&sum, &op.labels(), durations.sum.as_secs_f64());
        page.sample(&count, &op.labels(), durations.count);
    }
}

/// What of this process is in memory; none where the system does not tell.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Gauge,
    Counter,
    Histogram,
    Summary,
}

/// The text as it grows. A family's lines stand together, after its two comments.
#[derive(Debug, Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Gauge, help);
        self.sample(name, &[], value);
    }

    /// A family of one number for each operation that has it.
    fn each<T: Display>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        ops: &[Op<'_>],
        number: impl Fn(&Op<'_>) -> Option<T>,
    ) {
        self.family(name, kind, help);
        for op in ops {
            if let Some(number) = number(op) {
                self.sample(name, &op.labels(), number);
            }
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let mut shown = String::new();
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            shown.push_str(if at == 0 { "{" } else { "," });
            shown.push_str(&format!("{label}=\"{text}\""));
        }
        if !labels.is_empty() {
            shown.push('}');
        }
        self.line(format_args!("{name}{shown} {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a `String` does not fail.
        let _infallible = writeln!(self.text, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_escaped_as_the_format_has_it() {
        let mut page = Page::default();
        page.family("a_total", Kind::Counter, "One\\two\nthree \"four\".");
        page.sample("a_total", &[("op", "x\\y\n\"z\""), ("é", "ü")], 3);
        page.sample("a_total", &[], 0.25);
        assert_eq!(
            page.text,
            "# HELP a_total One\\\\two\\nthree \"four\".\n# TYPE a_total counter\n\
             a_total{op=\"x\\\\y\\n\\\"z\\\"\",é=\"ü\"} 3\na_total 0.25\n"
        );
    }

    #[test]
    fn the_memory_of_this_process_is_plausible() {
        let bytes = resident_bytes().unwrap();
        assert!((1 << 20..1 << 40).contains(&bytes), "{bytes}");
    }
}
