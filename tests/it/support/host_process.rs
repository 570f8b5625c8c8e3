//! A real host process: started on port 0, spoken to over its socket, ended by signal.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::build::built;
use super::{shorten, try_parse};

/// How a host is to be started. Everything has a default that suits most tests.
pub(crate) struct HostOptions {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    only_env: bool,
    cwd: Option<PathBuf>,
    udfs: Option<PathBuf>,
    through: Vec<OsString>,
    binary: PathBuf,
}

impl HostOptions {
    /// `udf-host dev serve` over the shipped operations, in the test's own working directory.
    pub(crate) fn new() -> HostOptions {
        HostOptions {
            args: vec![],
            env: vec![],
            only_env: false,
            cwd: None,
            udfs: Some(built().udfs.clone()),
            through: vec![],
            binary: built().host.clone(),
        }
    }

    /// Adds one argument after `dev serve`.
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> HostOptions {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Runs every operation in this lane, whatever its project says.
    pub(crate) fn lane(self, lane: &str) -> HostOptions {
        self.arg("--lane").arg(lane)
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> HostOptions {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts with exactly the variables given, nothing inherited.
    pub(crate) fn only_env(mut self) -> HostOptions {
        self.only_env = true;
        self
    }

    /// Sets the working directory.
    pub(crate) fn cwd(mut self, dir: &Path) -> HostOptions {
        self.cwd = Some(dir.to_path_buf());
        self
    }

    /// Serves the operations of another folder; `None` passes no `--udfs`.
    pub(crate) fn udfs(mut self, dir: Option<&Path>) -> HostOptions {
        self.udfs = dir.map(Path::to_path_buf);
        self
    }

    /// Starts it by way of a command that takes another one at its end.
    pub(crate) fn through(mut self, words: &[&str]) -> HostOptions {
        self.through = words.iter().map(OsString::from).collect();
        self
    }

    /// Starts another copy of the binary.
    pub(crate) fn binary(mut self, path: &Path) -> HostOptions {
        self.binary = path.to_path_buf();
        self
    }

    /// The command that [`HostProcess::start`] runs.
    pub(crate) fn command(&self) -> Command {
        let built = built();
        let mut words = self.through.iter().cloned().chain([self.binary.clone().into()]);
        let mut command = Command::new(words.next().expect("the host is the last of them"));
        command.args(words).args(["dev", "serve"]);
        if let Some(udfs) = &self.udfs {
            command.arg("--only").arg("--udfs").arg(udfs);
        }
        command.args(&self.args);
        if self.only_env {
            command.env_clear();
        }
        command.env_remove("OPENFUSED_APP_DIR_STATE").env("XDG_CACHE_HOME", &built.cache);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// One answer of the host.
#[derive(Debug)]
pub(crate) struct Answer {
    /// HTTP status.
    pub(crate) status: u16,
    /// The body, as sent.
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        try_parse(&self.text).unwrap_or_else(|error| {
            panic!("the body is not JSON ({error}): {}", shorten(&self.text))
        })
    }
}

/// A running host; dropped, it is killed.
pub(crate) struct HostProcess {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(crate) origin: String,
    /// The token of the handshake.
    pub(crate) token: String,
    agent: ureq::Agent,
    stderr: Arc<Mutex<Vec<u8>>>,
    stdout_rest: Arc<Mutex<Vec<u8>>>,
}

impl HostProcess {
    /// Starts a host and reads its handshake line.
    #[track_caller]
    pub(crate) fn start(options: &HostOptions) -> HostProcess {
        HostProcess::try_start(options).unwrap_or_else(|why| panic!("{why}"))
    }

    /// [`HostProcess::start`] that tells why there is no host.
    pub(crate) fn try_start(options: &HostOptions) -> Result<HostProcess, String> {
        let mut child =
            options.command().spawn().map_err(|error| format!("cannot start the host: {error}"))?;
        let stderr = collect(child.stderr.take().expect("stderr is piped"));
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        let handshake = read.ok().and_then(|_| try_parse(&line).ok());
        let field =
            |name: &str| handshake.as_ref().and_then(|it| it[name].as_str()).map(str::to_owned);
        let (Some(origin), Some(token)) = (field("origin"), field("token")) else {
            // The host is useless without a handshake: end it, then show what it said.
            let _already_gone = child.kill();
            let status = child.wait();
            thread::sleep(Duration::from_millis(50));
            let said = String::from_utf8_lossy(&stderr.lock().unwrap()).into_owned();
            return Err(format!(
                "no usable handshake line: {line:?}, ended {status:?}, stderr: {said}"
            ));
        };
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .max_idle_connections(0)
            .build()
            .into();
        let stdout_rest = collect(stdout);
        Ok(HostProcess { child, origin, token, agent, stderr, stdout_rest })
    }

    /// The port it listens on.
    pub(crate) fn port(&self) -> u16 {
        let port = self.origin.rsplit(':').next().and_then(|text| text.parse().ok());
        port.unwrap_or_else(|| panic!("origin without a port: {}", self.origin))
    }

    /// All that it printed on stderr up to now.
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    /// Waits until its log has this: what was answered may be there before the line about it.
    #[track_caller]
    pub(crate) fn logged(&self, words: &str) {
        let found = wait_until(Duration::from_secs(60), words, || {
            self.stderr().contains(words).then_some(())
        });
        assert!(found.is_some(), "{words:?} is not in the log: {}", self.stderr());
    }

    /// What it printed on stdout after the handshake line: must stay empty.
    pub(crate) fn stdout_rest(&self) -> String {
        String::from_utf8_lossy(&self.stdout_rest.lock().unwrap()).into_owned()
    }

    /// `None` while it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the child can be asked")
    }

    /// POSTs a body to a route with the token and the given address.
    pub(crate) fn post(
        &self,
        route: &str,
        workspace: &str,
        project: &str,
        body: &str,
    ) -> Result<Answer, String> {
        let url = format!(
            "{}{route}?t={}&workspace={workspace}&project={project}",
            self.origin, self.token
        );
        let sent = self.agent.post(&url).header("Content-Type", "application/json").send(body);
        answer(sent)
    }

    /// Sends any method to any address.
    pub(crate) fn request(&self, method: &str, url: &str, body: &str) -> Result<Answer, String> {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(url)
            .header("Content-Type", "application/json");
        let request = request.body(body.to_owned()).map_err(|error| error.to_string())?;
        let request =
            self.agent.configure_request(request).allow_non_standard_methods(true).build();
        answer(self.agent.run(request))
    }

    /// GETs a path with the token.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        let url = format!("{}{path}?t={}", self.origin, self.token);
        answer(self.agent.get(&url).call()).unwrap_or_else(|why| panic!("GET {path}: {why}"))
    }

    /// Calls an operation and returns status and envelope.
    #[track_caller]
    pub(crate) fn exec(
        &self,
        workspace: &str,
        project: &str,
        udf: &str,
        overrides: &Value,
    ) -> (u16, Value) {
        let body = json!({"udf": udf, "overrides": overrides}).to_string();
        let answer = self
            .post("/api/exec/udf", workspace, project, &body)
            .unwrap_or_else(|why| panic!("{project}.{udf}: {why}"));
        (answer.status, answer.json())
    }

    /// [`HostProcess::exec`] for a call that is held up on purpose.
    #[track_caller]
    pub(crate) fn exec_patiently(
        &self,
        workspace: &str,
        project: &str,
        udf: &str,
        overrides: &Value,
    ) -> (u16, Value) {
        let url = format!(
            "{}/api/exec/udf?t={}&workspace={workspace}&project={project}",
            self.origin, self.token
        );
        let body = json!({"udf": udf, "overrides": overrides}).to_string();
        let request = self.agent.post(&url).header("Content-Type", "application/json");
        let request = request.config().timeout_global(Some(Duration::from_secs(900))).build();
        let answer =
            answer(request.send(body)).unwrap_or_else(|why| panic!("{project}.{udf}: {why}"));
        (answer.status, answer.json())
    }

    /// Calls a shipped operation that must succeed and returns its data.
    #[track_caller]
    pub(crate) fn data(&self, project: &str, udf: &str, overrides: &Value) -> Value {
        let (status, mut envelope) = self.exec("_core", project, udf, overrides);
        assert_eq!(
            (status, &envelope["error"]),
            (200, &Value::Null),
            "{project}.{udf}: {envelope}"
        );
        envelope["data"].take()
    }

    /// Sends SIGTERM and waits for the end.
    #[track_caller]
    pub(crate) fn terminate(mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.wait(Duration::from_secs(10))
    }

    /// Sends a signal to the host.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the host can be signalled");
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `count` operations can be called and nothing is left to do.
    #[track_caller]
    pub(crate) fn wait_ready(&self, count: usize) {
        let mut progress = Value::Null;
        let ready = wait_until(Duration::from_secs(300), "all operations", || {
            progress = self.get("/api/udfs").json()["data"]["progress"].take();
            (progress["settled"] == true).then(|| progress["ready"] == count)
        });
        assert_eq!(ready, Some(true), "{progress}\n{}", self.stderr());
    }

    /// Sends SIGKILL and reaps.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the host can be killed");
        self.child.wait().expect("the host can be reaped");
    }

    /// Waits for the end, at most `limit`.
    #[track_caller]
    pub(crate) fn wait(&mut self, limit: Duration) -> ExitStatus {
        let end = Instant::now() + limit;
        wait_until(limit, "the host's end", || {
            self.child.try_wait().expect("the child can be asked")
        })
        .unwrap_or_else(|| panic!("the host still runs at {end:?}; stderr: {}", self.stderr()))
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // Already ended is fine: the test may have killed it itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Asks until there is an answer or the limit is over; the pause between asks is short.
pub(crate) fn wait_until<T>(
    limit: Duration,
    what: &str,
    mut ask: impl FnMut() -> Option<T>,
) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = ask() {
            return Some(found);
        }
        if Instant::now() >= end {
            eprintln!("gave up waiting for {what} after {limit:?}");
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn answer(sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Answer, String> {
    let mut response = sent.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(1 << 30).read_to_string();
    Ok(Answer { status, text: body.map_err(|error| format!("status {status}, no body: {error}"))? })
}

/// Reads a stream to its end on a thread of its own, so that the host never blocks on it.
fn collect(mut from: impl Read + Send + 'static) -> Arc<Mutex<Vec<u8>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&kept);
    thread::spawn(move || {
        let mut chunk = [0; 8192];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            sink.lock().unwrap().extend_from_slice(&chunk[..read]);
        }
    });
    kept
}
