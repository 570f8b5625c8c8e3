//! A server that does to its clients what it is told: answers, hangs, breaks off.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// What is done to a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// A whole answer: status, headers, body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// These bytes, then the connection ends.
    Bytes(String),
    /// Nothing, for as long as the client waits.
    Hang,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// `POST`.
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: String,
}

impl Asked {
    /// The value of a header; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        super::parse(&self.body)
    }
}

/// A running server.
pub(crate) struct ScriptedServer {
    /// `http://127.0.0.1:PORT`.
    pub(crate) origin: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl ScriptedServer {
    /// A server whose acts are chosen by `act` from the request and how many came before it.
    pub(crate) fn start(
        act: impl Fn(&Asked, usize) -> Act + Send + Sync + 'static,
    ) -> ScriptedServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, act) = (Arc::clone(&asked), Arc::new(act));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (log, act) = (Arc::clone(&log), Arc::clone(&act));
                // A client that goes away ends its own thread alone.
                thread::spawn(move || serve(stream, &log, &*act));
            }
        });
        ScriptedServer { origin, asked }
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// One request on each connection.
fn serve(
    stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    act: &dyn Fn(&Asked, usize) -> Act,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = || {
        let mut line = String::new();
        (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut asked = Asked { method, path, headers, body: String::new() };
    let length = asked.header("content-length").parse().unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    asked.body = String::from_utf8_lossy(&body).into_owned();
    let before = {
        let mut log = log.lock().unwrap();
        log.push(asked.clone());
        log.len() - 1
    };
    let mut stream = stream;
    match act(&asked, before) {
        Act::Answer(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n");
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            head += &format!("Content-Length: {}\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
        }
        Act::Bytes(bytes) => stream.write_all(bytes.as_bytes()).ok()?,
        // Ends when the client closes its side.
        Act::Hang => drop(stream.read(&mut [0])),
    }
    Some(())
}
