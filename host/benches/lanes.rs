//! What a worker costs: a call in one against the same call in the host's own process, and the first answer after one
//! was killed.
//!
//! `cargo bench -p host --bench lanes` starts the host over two projects with the same operation, one for each lane, and
//! calls them in turns over one kept connection: `BENCH_CALLS` (default 4000) each, for a reply of 1 KiB. Then it kills
//! the worker `BENCH_KILLS` times (default 50) and has the operation end it by itself as often as it may before it is put
//! in quarantine.

#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]
#![expect(clippy::disallowed_methods, reason = "a bench lays out folders of its own")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing in here takes that long on any machine.
const PATIENCE: Duration = Duration::from_secs(20 * 60);
/// Crashes that an operation may have before it gets a worker of its own.
const CRASHES: usize = 2;

fn main() {
    let number = |name, default| {
        env::var(name).map_or(default, |text| text.parse::<usize>().expect("a number"))
    };
    let (calls, kills) = (number("BENCH_CALLS", 4000), number("BENCH_KILLS", 50));
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (project, lane) in [("inside", "inline"), ("apart", "worker")] {
        lay_out(&folder.path().join("udfs").join(project), project, lane);
    }
    let mut host = Served::start(folder.path());
    for project in ["inside", "apart"] {
        host.wait_for(project);
    }

    let mut took = [Vec::new(), Vec::new()];
    for at in 0..calls + calls / 10 {
        for (project, took) in ["inside", "apart"].iter().zip(&mut took) {
            let began = Instant::now();
            let (status, body) = host.call(project, "kib");
            let elapsed = began.elapsed().as_secs_f64() * 1e6;
            assert!(status == 200 && body.len() > 1024, "{status} {body}");
            // The first ones find out where everything is.
            if at >= calls / 10 {
                took.push(elapsed);
            }
        }
    }
    println!(
        "a call with a reply of 1 KiB over one kept connection, {calls} in each lane by turns"
    );
    let [inline, worker] = &mut took;
    for (name, took) in [("inline", &mut *inline), ("worker", &mut *worker)] {
        took.sort_by(f64::total_cmp);
        println!(
            "  {name}  {:>7.1} µs, {:>7.1} at the 95th of 100",
            part(took, 50),
            part(took, 95)
        );
    }
    println!(
        "  a worker adds {:>5.1} µs, {:.2} times inline  (bar: 150 µs)",
        part(worker, 50) - part(inline, 50),
        part(worker, 50) / part(inline, 50)
    );

    let mut killed: Vec<f64> = (0..kills).map(|_| host.after(Served::kill)).collect();
    let mut crashed: Vec<f64> = (0..CRASHES).map(|_| host.after(Served::crash)).collect();
    for (how, took) in [("it was killed", &mut killed), ("it aborted", &mut crashed)] {
        took.sort_by(f64::total_cmp);
        println!(
            "first reply after {how}: {:.1} ms, {:.1} at the 95th of 100, of {}  (bar: 50 ms)",
            part(took, 50),
            part(took, 95),
            took.len()
        );
    }
}

fn part(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

fn lay_out(project: &Path, name: &str, lane: &str) {
    fs::create_dir_all(project.join("says/src")).expect("a folder");
    fs::write(project.join("project.toml"), format!("lane = {lane:?}\n")).expect("a file");
    fs::write(project.join("says/spec.md"), "# says\n").expect("a file");
    let manifest = format!(
        "[package]\nname = \"udf-{name}-says\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\ndoctest = false\n\n[dependencies]\nsdk = {{ workspace = true }}\n"
    );
    fs::write(project.join("says/Cargo.toml"), manifest).expect("a file");
    fs::write(project.join("says/src/lib.rs"), SOURCE).expect("a file");
}

const SOURCE: &str = r#"use sdk::prelude::*;

/// Says `what`.
#[udf]
fn says(_ctx: &Context, what: &str) -> Result<Reply, UdfError> {
    Ok(match what {
        "kib" => Reply::text(&"x".repeat(1024)),
        "pid" => Reply::value(&std::process::id()),
        "end" => std::process::abort(),
        other => Reply::text(other),
    })
}
"#;

struct Served {
    child: Child,
    token: String,
    address: String,
    connection: BufReader<TcpStream>,
}

impl Served {
    fn start(folder: &Path) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_udf-host"))
            .args(["dev", "serve", "--only", "--no-watch", "--log", "warn", "--udfs"])
            .arg(folder.join("udfs"))
            .arg("--app-dir")
            .arg(folder.join("app"))
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("log")).expect("a file"))
            .spawn()
            .expect("the host starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let said: serde_json::Value = serde_json::from_str(&line).expect("the line is JSON");
        let text = |name: &str| said[name].as_str().expect("a text").to_owned();
        let address = text("origin").trim_start_matches("http://").to_owned();
        let connection = TcpStream::connect(&address).expect("a connection");
        connection.set_nodelay(true).expect("a socket takes that");
        Served { child, token: text("token"), address, connection: BufReader::new(connection) }
    }

    /// Waits until the operation is built.
    fn wait_for(&mut self, project: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.call(project, "ready").0 != 200 {
            assert!(Instant::now() < deadline, "{project} does not answer");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Status and body of one call.
    fn call(&mut self, project: &str, what: &str) -> (u16, String) {
        let body = format!("{{\"udf\":\"says\",\"overrides\":{{\"what\":\"{what}\"}}}}");
        let request = format!(
            "POST /api/exec/udf?t={}&workspace=default&project={project} HTTP/1.1\r\nHost: {}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            self.address,
            body.len()
        );
        self.connection.get_mut().write_all(request.as_bytes()).expect("the host reads");
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            self.connection.read_line(&mut line).expect("the host answers");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().expect("a status");
            } else if let Some(rest) = line.strip_prefix("content-length:") {
                length = rest.trim().parse().expect("a length");
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.connection.read_exact(&mut body).expect("a body");
        (status, String::from_utf8(body).expect("the body is text"))
    }

    fn kill(&mut self) {
        let (status, body) = self.call("apart", "pid");
        let said: serde_json::Value = serde_json::from_str(&body).expect("an envelope");
        let pid = said["data"].as_i64().unwrap_or_else(|| panic!("{status} {body}"));
        let pid = Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("above zero");
        kill_process(pid, Signal::KILL).expect("it runs");
    }

    fn crash(&mut self) {
        let (status, body) = self.call("apart", "end");
        assert!(status == 500 && body.contains("SIGABRT"), "{status} {body}");
    }

    /// Milliseconds from the end of the worker to the next reply.
    fn after(&mut self, end: fn(&mut Served)) -> f64 {
        end(self);
        let began = Instant::now();
        let (status, body) = self.call("apart", "kib");
        assert_eq!(status, 200, "{body}");
        began.elapsed().as_secs_f64() * 1e3
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}
