//! One request to a program on this machine: enough of HTTP/1.1 for a health check, an import and a look at an app.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of an answer that are read.
const MOST: u64 = 1024 * 1024;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    /// As text; what is no UTF-8 is replaced.
    pub(crate) body: String,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// JSON; empty is none.
    pub(crate) body: &'a str,
    pub(crate) within: Duration,
}

/// Whether somebody listens on a port of this machine.
pub(crate) fn listens(port: u16) -> bool {
    TcpStream::connect_timeout(&here(port), Duration::from_secs(1)).is_ok()
}

/// Asks the program on this port.
///
/// # Errors
/// Nobody answers, or what comes is no HTTP; in words.
pub(crate) fn ask(port: u16, request: &Request<'_>) -> Result<Answer, String> {
    let Request { method, path, headers, body, within } = *request;
    let plain = |text: &str| !text.chars().any(|c| c.is_control() || c == ' ');
    if !path.starts_with('/') || !plain(path) || method.is_empty() || !plain(method) {
        return Err(format!(
            "`{method} {path}` is no request: a path starts with `/` and has no blanks"
        ));
    }
    let failed = |error: std::io::Error| format!("{method} {path} on port {port}: {error}");
    let until = Instant::now() + within;
    let mut stream = TcpStream::connect_timeout(&here(port), within).map_err(failed)?;
    stream
        .set_read_timeout(Some(within))
        .and_then(|()| stream.set_write_timeout(Some(within)))
        .map_err(failed)?;
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ));
    }
    text.push_str("\r\n");
    text.push_str(body);
    stream.write_all(text.as_bytes()).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    while (bytes.len() as u64) < MOST {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
            // What came before the connection was cut counts, if it is whole.
            Err(_) if is_whole(&bytes) => break,
            Err(error) => return Err(failed(error)),
        }
        if is_whole(&bytes) {
            break;
        }
        if Instant::now() >= until {
            return Err(format!(
                "{method} {path} on port {port}: no whole answer after {} s",
                within.as_secs()
            ));
        }
    }
    parse(&bytes).ok_or_else(|| format!("{method} {path} on port {port}: the answer is no HTTP"))
}

fn here(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Head and the bytes behind it.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 4..]))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn status(head: &str) -> Option<u16> {
    head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.trim().parse().ok()
}

/// Whether nothing more is to come.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((head, body)) = split(bytes) else { return false };
    if matches!(status(head), Some(204 | 304)) {
        return true;
    }
    match header(head, "content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => header(head, "transfer-encoding").is_some() && body.ends_with(b"0\r\n\r\n"),
    }
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let (head, body) = split(bytes)?;
    let chunked =
        header(head, "transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked"));
    let body = if chunked { joined(body) } else { body.to_vec() };
    Some(Answer {
        status: status(head)?,
        content_type: header(head, "content-type").unwrap_or_default().to_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// The chunks of a body, as far as they came.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|line| {
            usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16).ok()
        });
        let Some(size) = size.filter(|size| *size > 0) else { break };
        let from = end + 2;
        let to = from.saturating_add(size).min(rest.len());
        body.extend_from_slice(&rest[from..to]);
        rest = rest.get(to + 2..).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn served(reply: &'static [u8]) -> Result<Answer, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap();
            stream.write_all(reply).unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        let request = Request {
            method: "POST",
            path: "/a?b=1",
            headers: &[("Authorization", "t")],
            body: "{}",
            within: Duration::from_secs(30),
        };
        let answer = ask(port, &request);
        let heard = server.join().unwrap();
        assert!(
            heard.starts_with("POST /a?b=1 HTTP/1.1\r\n") && heard.ends_with("\r\n\r\n{}"),
            "{heard}"
        );
        answer
    }

    #[test]
    fn answers_of_every_length() {
        for (reply, status, body) in [
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"[..], 200, "ok"),
            (b"HTTP/1.0 503 Busy\r\n\r\nlater", 503, "later"),
            (b"HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n",
                200,
                "abcde",
            ),
        ] {
            let answer = served(reply).unwrap();
            assert_eq!((answer.status, answer.body.as_str()), (status, body));
        }
        assert!(served(b"SSH-2.0\r\n\r\n").is_err());
        assert!(served(b"").is_err());
    }

    #[test]
    fn what_is_no_request_is_not_sent() {
        for (method, path) in
            [("GET", "x"), ("GET", "/a b"), ("GET", "/a\r\nX: y"), ("", "/"), ("G T", "/")]
        {
            let request =
                Request { method, path, headers: &[], body: "", within: Duration::from_secs(1) };
            assert!(ask(1, &request).unwrap_err().contains("is no request"), "{method} {path}");
        }
    }
}
