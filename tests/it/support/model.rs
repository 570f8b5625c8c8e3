//! A model service on a socket of this machine, in the form of chat completions. It outlives the hosts that ask it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// What the service does with a request.
pub(crate) enum Answer {
    /// The model says this.
    Says(Value),
    /// The service is down.
    Down,
    /// The service refuses: no patience helps.
    Refused,
    /// Nothing comes: whoever asked is gone.
    Gone,
}

/// One request as the model sees it.
#[derive(Clone)]
pub(crate) struct Asked {
    /// The system prompt.
    pub(crate) system: String,
    /// The conversation, the newest message last.
    pub(crate) messages: Vec<String>,
}

impl Asked {
    /// The newest message.
    pub(crate) fn last(&self) -> &str {
        self.messages.last().map_or("", String::as_str)
    }
}

/// The running service.
pub(crate) struct ModelService {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ModelService {
    /// Starts a service that answers with `answer`, one request after the other.
    pub(crate) fn start(mut answer: impl FnMut(&Asked) -> Answer + Send + 'static) -> ModelService {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stopped = Arc::new(AtomicBool::new(false));
        let (all, stop) = (Arc::clone(&asked), Arc::clone(&stopped));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let Some(request) = read(&stream) else { continue };
                all.lock().unwrap().push(request.clone());
                let (status, headers, body) = match answer(&request) {
                    Answer::Says(reply) => {
                        let text = reply.as_str().map_or_else(|| reply.to_string(), str::to_owned);
                        let body = json!({"choices": [{"message": {"content": text}}]});
                        ("200 OK", "", body.to_string())
                    }
                    Answer::Down => ("503 Busy", "retry-after: 0\r\n", "down".to_owned()),
                    Answer::Refused => ("401 No", "", "no key".to_owned()),
                    Answer::Gone => continue,
                };
                let length = body.len();
                let _gone = write!(
                    stream,
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
                );
            }
        });
        ModelService { address, asked, stopped, thread: Some(thread) }
    }

    /// What a host needs to be told of it.
    pub(crate) fn env(&self) -> [(&'static str, String); 4] {
        [
            ("UDF_HOST_LLM_PROVIDER", "openai".to_owned()),
            ("UDF_HOST_LLM_BASE_URL", format!("http://{}/v1", self.address)),
            ("UDF_HOST_LLM_MODEL", "scripted".to_owned()),
            ("UDF_HOST_LLM_KEY", "sk-never-shown".to_owned()),
        ]
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for ModelService {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // One more connection, so that the thread looks.
        let _refused = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let mut asked = Asked { system: String::new(), messages: Vec::new() };
    for message in body["messages"].as_array()? {
        let text = message["content"].as_str()?.to_owned();
        match message["role"].as_str()? {
            "system" => asked.system = text,
            _ => asked.messages.push(text),
        }
    }
    Some(asked)
}
