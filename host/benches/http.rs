//! The budgets of the host over HTTP, as ratios measured in one run.
//!
//! `get_card` over kept connections against a bare hyper server that answers the same bytes, both as processes of
//! their own, in turns; then dispatch without HTTP, a list among few and many cards, restart to first reply, memory.
//! `cargo bench -p host --bench http` builds the operations on its first run. `BENCH_REQUESTS` (default 20000) is the size of one turn.

#![expect(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use bytes::Bytes;
use host::{Address, Call, Config, Host};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

const CARDS: usize = 10_000;
/// Client threads, and connections of each: every thread writes to all of its connections and then reads from all.
const THREADS: usize = 2;
const CONNECTIONS: usize = 8;
const TURNS: usize = 5;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--bare") {
        return serve_bare(&arguments[at + 1]);
    }
    let turn: usize =
        env::var("BENCH_REQUESTS").map_or(20_000, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_cards(folder.path(), CARDS);

    let host = Served::host(folder.path());
    let target =
        format!("/api/exec/udf?t={}&workspace=_core&project=feedback-management", host.token);
    let request = |address: SocketAddr| {
        let body = r#"{"udf":"get_card","overrides":{"id":"card_00000005000"}}"#;
        format!(
            "POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let ours = request(host.address);
    let reply = wait_until_built(host.address, &ours);
    let file = folder.path().join("reply");
    write(&file, &reply);
    let bare = Served::bare(&file);
    let theirs = request(bare.address);

    let mut rates = (Vec::new(), Vec::new());
    load(host.address, &ours, turn / 4);
    load(bare.address, &theirs, turn / 4);
    let used =
        |host: &Served, bare: &Served| [host, bare].map(|server| cpu_seconds(server.child.id()));
    let before = used(&host, &bare);
    for _ in 0..TURNS {
        rates.0.push(load(host.address, &ours, turn));
        rates.1.push(load(bare.address, &theirs, turn));
    }
    let after = used(&host, &bare);
    let cpu = |at: usize| (after[at] - before[at]) * 1e6 / (turn * TURNS) as f64;
    let (ours, theirs) = (median(rates.0), median(rates.1));
    println!(
        "get_card over HTTP, {CARDS} cards, {} kept connections, {} byte reply",
        THREADS * CONNECTIONS,
        reply.len()
    );
    println!(
        "  udf-host   {ours:>8.0} requests/s, {:>5.1} µs of the server's CPU for each",
        cpu(0)
    );
    println!("  bare hyper {theirs:>8.0} requests/s, {:>5.1} µs", cpu(1));
    println!("  ratio      {:>8.2}  (bar: at least 0.50)", ours / theirs);
    println!(
        "memory of that host: {:.0} MiB (bar: at most 100 with 40 operations)",
        resident_mib(host.child.id())
    );
    drop(host);
    restart(folder.path());
    dispatch(folder.path());
    lists();
}

/// From the start of the process to the first reply of an operation, everything built before.
fn restart(app_dir: &Path) {
    let times: Vec<f64> = (0..TURNS)
        .map(|_| {
            let began = Instant::now();
            let host = Served::host(app_dir);
            let body = r#"{"udf":"get_card","overrides":{"id":"none"}}"#;
            let request = format!(
                "POST /api/exec/udf?t={}&workspace=_core&project=feedback-management HTTP/1.1\r\nHost: {}\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                host.token,
                host.address,
                body.len()
            );
            let reply = one(host.address, &request);
            assert!(reply.contains("not found"), "{reply}");
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    println!(
        "restart to first reply: {:.0} ms (bar: at most 150 with 40 operations)",
        median(times)
    );
}

/// One call through the dispatcher of a host in this process, store and all.
fn dispatch(app_dir: &Path) {
    let host = host_here(app_dir);
    let address = Address::new("_core", "feedback-management", "get_card");
    let call = || Call::new(address.clone()).param("id", "card_00000005000");
    let calls = 20_000;
    let times: Vec<f64> = (0..TURNS)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..calls {
                host.dispatcher.call(call()).expect("the card");
            }
            began.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
        })
        .collect();
    println!(
        "get_card without HTTP: {:.1} µs, of which dispatch should be at most 5",
        median(times)
    );
}

/// `list_cards` of a task with ten cards, through the dispatcher: among few cards and among many, in turns.
fn lists() {
    let stores = [1_000, 100_000].map(|cards| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write_cards(folder.path(), cards);
        (folder, cards)
    });
    let host = host_here(stores[0].0.path());
    let address = Address::new("_core", "feedback-management", "list_cards");
    let list = |(folder, cards): &(tempfile::TempDir, usize), n: usize| {
        let mut call =
            Call::new(address.clone()).param("task", &format!("task_{}", n % (cards / 10)));
        call.app_dir = folder.path().to_str().map(str::to_owned);
        host.dispatcher.call(call).expect("the cards")
    };
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..100 {
        for (store, times) in stores.iter().zip(&mut times) {
            let began = Instant::now();
            for n in 0..100 {
                list(store, round * 7919 + n * 104_729);
            }
            times.push(began.elapsed().as_secs_f64() * 1e6 / 100.0);
        }
    }
    let [few, many] = times.map(median);
    println!(
        "list_cards of a task with 10 cards, without HTTP: {few:.1} µs among 1 000 cards, {many:.1} µs among 100 000"
    );
    println!("  ratio      {:>8.2}  (bar: at most 1.5)", many / few);
}

/// A host in this process, with everything built.
fn host_here(app_dir: &Path) -> Host {
    let mut config =
        Config::from_process(host::config::Settings::default()).expect("a configuration");
    config.app_dir = Some(app_dir.to_owned());
    let host = Host::start(config).expect("a host");
    host.catalog.wait_settled(Instant::now() + Duration::from_secs(60));
    host
}

/// A server process; ended when dropped.
struct Served {
    child: Child,
    address: SocketAddr,
    token: String,
}

impl Served {
    fn host(app_dir: &Path) -> Served {
        let mut command = Command::new(env!("CARGO_BIN_EXE_udf-host"));
        Served::start(command.args(["dev", "serve", "--app-dir"]).arg(app_dir))
    }

    fn bare(reply: &Path) -> Served {
        let mut command = Command::new(env::current_exe().expect("this program"));
        Served::start(command.arg("--bare").arg(reply))
    }

    fn start(command: &mut Command) -> Served {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut line)
            .expect("a line");
        let said: serde_json::Value = serde_json::from_str(&line).expect("the line is JSON");
        let port = said["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        let token = said["token"].as_str().unwrap_or_default().to_owned();
        Served { child, address: SocketAddr::from(([127, 0, 0, 1], port)), token }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

/// The yardstick: hyper as its documentation shows it, answering every request with the content of a file.
fn serve_bare(file: &str) {
    let reply = Bytes::from(fs::read(file).expect("the reply"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut out = std::io::stdout();
        writeln!(out, "{{\"port\":{port}}}").and_then(|()| out.flush()).expect("somebody reads");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a TCP stream");
            let reply = reply.clone();
            tokio::spawn(async move {
                let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
                    let reply = reply.clone();
                    async move {
                        use http_body_util::BodyExt;
                        let _sent = request.into_body().collect().await.expect("a body");
                        Ok::<_, Infallible>(
                            hyper::Response::builder()
                                .header("content-type", "application/json")
                                .body(Full::new(reply))
                                .expect("a response"),
                        )
                    }
                });
                let _gone = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
}

/// Sends `requests` over kept connections; requests per second.
fn load(address: SocketAddr, request: &str, requests: usize) -> f64 {
    let request = Arc::new(request.as_bytes().to_vec());
    let began = Instant::now();
    let clients: Vec<_> = (0..THREADS)
        .map(|_| {
            let request = Arc::clone(&request);
            thread::spawn(move || {
                let mut streams: Vec<TcpStream> =
                    (0..CONNECTIONS).map(|_| connect(address)).collect();
                let mut buffer = Vec::new();
                for _ in 0..requests / THREADS / CONNECTIONS {
                    for stream in &mut streams {
                        stream.write_all(&request).expect("the server reads");
                    }
                    for stream in &mut streams {
                        read_reply(stream, &mut buffer);
                        assert!(
                            buffer.starts_with(b"HTTP/1.1 200"),
                            "{}",
                            String::from_utf8_lossy(&buffer)
                        );
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("every reply is good");
    }
    (requests / THREADS / CONNECTIONS * THREADS * CONNECTIONS) as f64
        / began.elapsed().as_secs_f64()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP stream");
    stream
}

/// Reads one reply, head and body, into `buffer`.
fn read_reply(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    buffer.clear();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).expect("the server answers");
        assert!(read > 0, "the server closed the connection");
        buffer.extend_from_slice(&piece[..read]);
        let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") else { continue };
        let name = b"content-length: ";
        let at = memchr::memmem::find(&buffer[..end], name).expect("a length") + name.len();
        let digits: String = buffer[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .map(|byte| char::from(*byte))
            .collect();
        if buffer.len() >= end + 4 + digits.parse::<usize>().expect("a number") {
            return;
        }
    }
}

fn one(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut buffer = Vec::new();
    read_reply(&mut stream, &mut buffer);
    String::from_utf8(buffer).expect("the reply is text")
}

/// The body of the first good reply.
fn wait_until_built(address: SocketAddr, request: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(20 * 60);
    loop {
        let reply = one(address, request);
        if let Some((head, body)) = reply.split_once("\r\n\r\n")
            && head.starts_with("HTTP/1.1 200")
        {
            return body.to_owned();
        }
        assert!(reply.contains("still being built") && Instant::now() < deadline, "{reply}");
    }
}

fn write_cards(app_dir: &Path, cards: usize) {
    let cards: Vec<serde_json::Value> = (0..cards)
        .map(|n| {
            serde_json::json!({
                "id": format!("card_{n:011}"), "project": "bench", "taskId": format!("task_{}", n / 10),
                "effect": "decision", "status": if n % 20 == 0 { "pending" } else { "approved" },
                "continuationPolicy": "none", "idempotencyKey": null, "summary": format!("question {n}"),
                "payload": {"widget": {"type": "choice", "options": ["yes", "no"]}, "text": "x".repeat(200)},
                "result": null, "createdBy": "agent", "sourceRunId": "run_1", "resolvedBy": null,
                "createdAt": "2026-01-01T00:00:00.000Z", "resolvedAt": null,
            })
        })
        .collect();
    fs::create_dir_all(app_dir.join("state")).expect("the state folder");
    write(&app_dir.join("state/cards.json"), &serde_json::to_string_pretty(&cards).expect("JSON"));
}

fn write(path: &Path, text: &str) {
    fs::File::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .expect("the file is written");
}

fn resident_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the line").trim();
    kib.trim_end_matches(" kB").trim().parse::<f64>().expect("a number") / 1024.0
}

/// User and system time of a process, in the ticks of a hundredth second that Linux counts in.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("the state").split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
