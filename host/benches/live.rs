//! What a save costs: from the end of its build to the first answer of the new version, and the memory that stays.
//!
//! `cargo bench -p host --bench live` starts the host over a folder with one operation, saves it `BENCH_SAVES` times
//! (default 10) and calls it until the new version answers; in the host's own process, and in a worker, where each new
//! version gets a fresh one. The end of a build is the moment in which cargo names the finished library; the host's log
//! tells how long after that the version was in place. Memory is that of the host and its workers.
//!
//! Run `cargo build --release` before: else the first build takes as long as that does. Each line is printed as it comes.

#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]
#![expect(clippy::disallowed_methods, reason = "a bench lays out folders of its own")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nothing in here takes that long on any machine.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

fn main() {
    let saves: usize =
        std::env::var("BENCH_SAVES").map_or(10, |text| text.parse().expect("a number"));
    for lane in ["inline", "worker"] {
        measure(lane, saves);
    }
}

fn measure(lane: &str, saves: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let op = folder.path().join("udfs/benchlive/says");
    fs::create_dir_all(op.join("src")).expect("a folder");
    fs::write(op.join("Cargo.toml"), MANIFEST).expect("a file");
    fs::write(op.join("spec.md"), "# says\n").expect("a file");
    fs::write(op.join("../project.toml"), format!("lane = {lane:?}\n")).expect("a file");
    save(&op, 0);
    let host = Served::start(folder.path());
    println!("{saves} saves of one operation, each called once it is live (lane {lane})");
    let began = Instant::now();
    host.answers("0");
    println!("  the first build {:>7.1} s", began.elapsed().as_secs_f64());

    let (mut after_build, mut after_save, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for at in 1..=saves {
        let before = host.resident_mib();
        let saved = Instant::now();
        save(&op, at);
        let answered = host.answers(&at.to_string());
        after_save.push(saved.elapsed().as_secs_f64() * 1e3);
        after_build
            .push(answered.duration_since(host.built(at)).map_or(0.0, |it| it.as_secs_f64() * 1e3));
        // What the worker before this one had is given back by then.
        thread::sleep(Duration::from_millis(200));
        memory.push(host.resident_mib() - before);
        println!(
            "  save {at:>3}: live {:>6.1} ms after the build, {:>7.1} ms after the save, {:>6.2} MiB more",
            after_build[at - 1],
            after_save[at - 1],
            memory[at - 1]
        );
    }
    println!(
        "  after the build {:>7.1} ms, {:>7.1} at most  (bar: 200)",
        median(&after_build),
        most(&after_build)
    );
    println!("  after the save  {:>7.1} ms, with the build", median(&after_save));
    println!(
        "  one reload adds {:>7.2} MiB, {:>6.2} at most  (bar: 5)",
        median(&memory),
        most(&memory)
    );
}

const MANIFEST: &str = "[package]\nname = \"udf-benchlive-says\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
[lib]\ncrate-type = [\"cdylib\"]\ndoctest = false\n\n[dependencies]\nsdk = { workspace = true }\n";

fn save(op: &Path, answer: usize) {
    let source = format!(
        "use sdk::prelude::*;\n\n/// Says a number.\n#[udf]\nfn says(_ctx: &Context) -> Result<Reply, UdfError> {{\n    \
         Ok(Reply::text(\"{answer}\"))\n}}\n"
    );
    fs::write(op.join("src/lib.rs"), source).expect("a file");
}

struct Served {
    child: Child,
    url: String,
    log: std::path::PathBuf,
}

impl Served {
    fn start(folder: &Path) -> Served {
        let log = folder.join("log");
        let mut child = Command::new(env!("CARGO_BIN_EXE_udf-host"))
            .args(["dev", "serve", "--only", "--log", "info", "--udfs"])
            .arg(folder.join("udfs"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("a file"))
            .spawn()
            .expect("the host starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let said: serde_json::Value = serde_json::from_str(&line).expect("the line is JSON");
        let text = |name: &str| said[name].as_str().expect("a text").to_owned();
        let url = format!(
            "{}/api/exec/udf?t={}&workspace=default&project=benchlive",
            text("origin"),
            text("token")
        );
        Served { child, url, log }
    }

    /// Calls until the operation answers this, and tells when it did.
    fn answers(&self, want: &str) -> SystemTime {
        let want = format!("\"data\":\"{want}\"");
        let deadline = Instant::now() + PATIENCE;
        let mut said = String::new();
        while Instant::now() < deadline {
            let sent = ureq::post(&self.url).send(r#"{"udf":"says"}"#);
            said = match sent.and_then(|mut reply| reply.body_mut().read_to_string()) {
                Ok(body) => body,
                Err(error) => error.to_string(),
            };
            if said.replace(": ", ":").contains(&want) {
                return SystemTime::now();
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("no answer {want}: {said}\n{}", fs::read_to_string(&self.log).unwrap_or_default());
    }

    /// When the build of the `at`-th new version ended.
    fn built(&self, at: usize) -> SystemTime {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log = fs::read_to_string(&self.log).expect("the log");
            if let Some(line) =
                log.lines().filter(|line| line.contains("a new version answers")).nth(at - 1)
            {
                let time: jiff::Timestamp =
                    line.split(' ').next().and_then(|word| word.parse().ok()).expect("a time");
                let word = line.split("after_ms=").nth(1).and_then(|rest| rest.split(' ').next());
                let after: u64 = word.and_then(|word| word.parse().ok()).expect("a number");
                let micros = u64::try_from(time.as_microsecond()).expect("after 1970");
                return UNIX_EPOCH + Duration::from_micros(micros) - Duration::from_millis(after);
            }
            assert!(Instant::now() < deadline, "{log}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Memory of the host and its workers.
    fn resident_mib(&self) -> f64 {
        let own = self.child.id();
        let pids = fs::read_dir("/proc").expect("the system shows its processes").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
        pids.filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
            let parent: u32 = field("PPid:")?.trim().parse().ok()?;
            let counts = pid == own || parent == own;
            let kib: f64 = field("VmRSS:")?.trim().trim_end_matches(" kB").parse().ok()?;
            counts.then_some(kib / 1024.0)
        })
        .sum()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::MIN, f64::max)
}
