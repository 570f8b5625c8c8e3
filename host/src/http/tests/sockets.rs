//! What only a socket shows: raw heads, chunks, kept connections, the end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::time::Instant;

use super::*;
use crate::http::serve::serve_hurriedly;
use crate::http::{Bound, Shutdown, bind, serve};

type Serving = Pin<Box<dyn Future<Output = std::io::Result<()>> + Send>>;

/// A host on a socket; ends when dropped.
struct Served {
    address: SocketAddr,
    token: String,
    shutdown: Shutdown,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    fn start() -> Served {
        Served::start_with(|bound, router, shutdown| Box::pin(serve(bound, router, shutdown)))
    }

    /// Every limit in time is 400 ms.
    fn start_in_a_hurry() -> Served {
        Served::start_with(|bound, router, shutdown| {
            Box::pin(serve_hurriedly(bound, router, shutdown))
        })
    }

    fn start_with(serve: fn(Bound, Router, Shutdown) -> Serving) -> Served {
        let bound = bind(0).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], bound.port));
        let (router, token) = empty_router(bound.port);
        let shutdown = Shutdown::default();
        let theirs = shutdown.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(serve(bound, router, theirs)).unwrap();
        });
        Served { address, token, shutdown, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn end(&mut self) -> Duration {
        let began = Instant::now();
        self.shutdown.begin();
        self.thread.take().unwrap().join().unwrap();
        began.elapsed()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shutdown.begin();
    }
}

/// One reply: status, head, body by its length.
fn read_reply(stream: &mut TcpStream) -> Option<(u16, String, String)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Some((status, head, String::from_utf8(body).unwrap()))
}

#[test]
fn raw_heads_get_their_status() {
    let served = Served::start();
    let own = format!("127.0.0.1:{}", served.address.port());
    for (name, head, want) in [
        ("plain", "GET /health HTTP/1.1\r\nHost: OWN\r\n\r\n", 200),
        ("old version without a host", "GET /health HTTP/1.0\r\n\r\n", 403),
        ("old version", "GET /health HTTP/1.0\r\nHost: OWN\r\n\r\n", 200),
        ("no host", "GET /health HTTP/1.1\r\n\r\n", 403),
        ("empty host", "GET /health HTTP/1.1\r\nHost:\r\n\r\n", 403),
        ("two hosts", "GET /health HTTP/1.1\r\nHost: OWN\r\nHost: evil.example\r\n\r\n", 403),
        ("two equal hosts", "GET /health HTTP/1.1\r\nHost: OWN\r\nHost: OWN\r\n\r\n", 403),
        ("host list", "GET /health HTTP/1.1\r\nHost: OWN, evil.example\r\n\r\n", 403),
        ("absolute, ours", "GET http://OWN/health HTTP/1.1\r\nHost: OWN\r\n\r\n", 200),
        ("absolute, foreign", "GET http://evil.example/health HTTP/1.1\r\nHost: OWN\r\n\r\n", 403),
        (
            "absolute, ours, host foreign",
            "GET http://OWN/health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            403,
        ),
        ("absolute, credentials", "GET http://a@OWN/health HTTP/1.1\r\nHost: OWN\r\n\r\n", 403),
        ("tunnel", "CONNECT evil.example:80 HTTP/1.1\r\nHost: OWN\r\n\r\n", 403),
        ("tunnel to us", "CONNECT OWN HTTP/1.1\r\nHost: OWN\r\n\r\n", 401),
        ("star", "OPTIONS * HTTP/1.1\r\nHost: OWN\r\n\r\n", 401),
        (
            "upgrade",
            "GET /health HTTP/1.1\r\nHost: OWN\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
            200,
        ),
        ("not HTTP", "hello\r\n\r\n", 400),
    ] {
        let mut stream = served.connect();
        stream.write_all(head.replace("OWN", &own).as_bytes()).unwrap();
        let (status, head, body) =
            read_reply(&mut stream).unwrap_or_else(|| panic!("{name}: no reply"));
        assert_eq!(status, want, "{name}: {body}");
        assert!(!head.contains("access-control"), "{name}");
        if name != "not HTTP" {
            assert!(body.starts_with('{'), "{name}: {body:?}");
        }
    }
}

#[test]
fn a_kept_connection_serves_again_chunks_included_and_head_has_no_body() {
    let served = Served::start();
    let (port, token) = (served.address.port(), &served.token);
    let mut stream = served.connect();
    let exec = format!("POST /api/exec/udf?t={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    for round in 0..3 {
        let chunks =
            "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"udf\":\"w\r\n7\r\n.p.op\"}\r\n0\r\n\r\n";
        stream.write_all(format!("{exec}{chunks}").as_bytes()).unwrap();
        let (status, _, body) = read_reply(&mut stream).unwrap();
        assert_eq!(status, 404, "round {round}: {body}");
        assert!(body.contains("unknown workspace `w`"), "{body}");
        stream
            .write_all(
                format!("HEAD /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes(),
            )
            .unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        while !head.ends_with(b"\r\n\r\n") {
            head.rotate_left(1);
            stream.read_exact(&mut head[11..]).unwrap();
        }
    }
}

#[test]
fn a_body_over_the_limit_is_read_to_its_end_so_that_the_413_arrives() {
    let served = Served::start();
    let (port, token) = (served.address.port(), &served.token);
    let body = vec![b' '; 8 << 20];
    for framing in ["length", "chunks"] {
        let mut stream = served.connect();
        let head = format!("POST /api/exec/udf?t={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
        if framing == "length" {
            stream
                .write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes())
                .unwrap();
            stream.write_all(&body).unwrap();
        } else {
            stream
                .write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes())
                .unwrap();
            for chunk in body.chunks(1 << 16) {
                stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).unwrap();
                stream.write_all(chunk).unwrap();
                stream.write_all(b"\r\n").unwrap();
            }
            stream.write_all(b"0\r\n\r\n").unwrap();
        }
        let (status, _, reply) = read_reply(&mut stream).unwrap();
        assert_eq!(status, 413, "{framing}");
        assert!(reply.contains("limit of 1000 bytes"), "{reply}");
        // The connection is still good.
        stream
            .write_all(format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes())
            .unwrap();
        assert_eq!(read_reply(&mut stream).unwrap().0, 200, "{framing}");
    }
}

#[test]
fn whoever_asks_before_sending_a_body_is_told_at_once() {
    let served = Served::start();
    let port = served.address.port();
    let mut stream = served.connect();
    let head =
        "POST /api/exec/udf?t=no HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 999\r\n";
    stream.write_all(format!("{head}Host: 127.0.0.1:{port}\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(read_reply(&mut stream).unwrap().0, 401);
}

#[test]
fn an_endless_head_is_refused() {
    let served = Served::start();
    let mut stream = served.connect();
    let field = format!("X-Long: {}\r\n", "x".repeat(4000));
    let mut head = format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", served.address.port());
    head.push_str(&field.repeat(40));
    // The host may answer and close before all of it is written.
    let _refused_midway = stream.write_all(head.as_bytes());
    let status = read_reply(&mut stream).map(|(status, ..)| status);
    assert!(matches!(status, None | Some(431)), "{status:?}");
}

#[test]
fn the_end_is_prompt_with_idle_and_half_open_connections() {
    let mut served = Served::start();
    let port = served.address.port();
    let fresh = served.connect();
    let mut half = served.connect();
    half.write_all(b"GET /hea").unwrap();
    let mut idle = served.connect();
    idle.write_all(format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes())
        .unwrap();
    assert_eq!(read_reply(&mut idle).unwrap().0, 200);
    let took = served.end();
    assert!(took < Duration::from_secs(2), "{took:?}");
    for mut stream in [fresh, half, idle] {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }
    assert!(TcpStream::connect(served.address).is_err());
}

#[test]
fn what_stalls_is_closed_and_what_comes_after_a_long_silence_is_served() {
    let served = Served::start_in_a_hurry();
    let (port, token) = (served.address.port(), &served.token);
    let health = format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    for (name, start) in [
        ("nothing sent", String::new()),
        ("half a head", "GET /hea".to_owned()),
        (
            "half a body",
            format!(
                "POST /api/exec/udf?t={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 9\r\n\r\n{{"
            ),
        ),
        ("kept after a reply", health.clone()),
    ] {
        let mut stream = served.connect();
        stream.write_all(start.as_bytes()).unwrap();
        if name == "kept after a reply" {
            assert_eq!(read_reply(&mut stream).unwrap().0, 200);
        }
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "{name}");
        // Nobody looks at the clock while there is no connection; the next one must not be judged by the old time.
        std::thread::sleep(Duration::from_millis(900));
        let mut stream = served.connect();
        stream.write_all(health.as_bytes()).unwrap();
        assert_eq!(read_reply(&mut stream).unwrap().0, 200, "after {name}");
    }
}

#[test]
fn a_connection_too_many_is_told_so_even_while_it_sends() {
    crate::http::raise_open_files();
    // Both ends of every connection are here.
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if files.is_some_and(|files| files < 3 * crate::http::serve::MAX_CONNECTIONS as u64) {
        // Past what the test runner captures.
        let _nobody_listens = writeln!(
            std::io::stderr(),
            "!!! SKIPPED: this process may only hold {files:?} files open, too few for so many connections"
        );
        return;
    }
    let served = Served::start();
    let taken: Vec<TcpStream> = (0..crate::http::serve::MAX_CONNECTIONS)
        .map(|_| {
            let mut stream = served.connect();
            write!(stream, "GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", served.address).unwrap();
            assert_eq!(read_reply(&mut stream).map(|(status, ..)| status), Some(200));
            stream
        })
        .collect();
    let mut late = served.connect();
    let head = "POST /api/exec/udf HTTP/1.1\r\nContent-Length: 400000\r\n\r\n";
    late.write_all(head.as_bytes()).unwrap();
    for _ in 0..100 {
        late.write_all(&[b' '; 4000]).unwrap();
    }
    let (status, _, body) = read_reply(&mut late).unwrap();
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("too many connections"), "{body}");
    drop(taken);
}
