//! Takes the port: the loopback addresses and nothing else.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::port_holder;
use crate::error::HostError;

/// Listening sockets on one port.
#[derive(Debug)]
pub struct Bound {
    /// The port of all of them.
    pub port: u16,
    pub(crate) sockets: Vec<TcpListener>,
}

impl Bound {
    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Files that a host may hold open: more than its connections and what they read.
const OPEN_FILES: u64 = 8192;

/// Raises the soft limit of open files towards `OPEN_FILES`, as far as the hard one allows: many systems start
/// programs with 1024, which is less than a host's connections.
pub fn raise_open_files() {
    let now = getrlimit(Resource::Nofile);
    let most = now.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if now.current.is_some_and(|current| current < most)
        && let Err(error) =
            setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: now.maximum })
    {
        tracing::debug!(target: "udf_host::http", %error, "the limit of open files stays as it is");
    }
}

/// How often another free port is tried when the one from the system is taken on IPv6.
const ATTEMPTS: usize = 16;

/// Listens on `port` (0: a free one) of 127.0.0.1, and of ::1 where the machine has it: `localhost` may mean either,
/// and a stranger on the other half of our port would get our clients' tokens.
///
/// # Errors
/// [`HostError::PortTaken`] names a fixed port and, where it can be found, who holds it. There is no walk to the next
/// port: whoever fixed it counts on it.
pub fn bind(port: u16) -> Result<Bound, HostError> {
    let mut attempt = 1;
    loop {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| refused(port, &error))?;
        let taken = v4.local_addr().map_err(|error| refused(port, &error))?.port();
        let sockets = match TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, taken))) {
            Ok(v6) => vec![v4, v6],
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if port == 0 && attempt < ATTEMPTS {
                    attempt += 1;
                    continue;
                }
                return Err(refused(taken, &error));
            }
            // No IPv6 on this machine.
            Err(_) => vec![v4],
        };
        for socket in &sockets {
            socket.set_nonblocking(true).map_err(|error| refused(taken, &error))?;
        }
        return Ok(Bound { port: taken, sockets });
    }
}

fn refused(port: u16, error: &io::Error) -> HostError {
    let holder = match error.kind() {
        io::ErrorKind::AddrInUse => {
            port_holder::find(port).map(|holder| format!(", held by {holder}")).unwrap_or_default()
        }
        _ => String::new(),
    };
    HostError::PortTaken { port, holder, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_names_port_and_holder() {
        let first = bind(0).unwrap();
        let message = bind(first.port).unwrap_err().to_string();
        assert!(message.contains(&first.port.to_string()), "{message}");
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
    }

    #[test]
    fn only_loopback_is_bound() {
        let bound = bind(0).unwrap();
        for socket in &bound.sockets {
            let address = socket.local_addr().unwrap();
            assert!(address.ip().is_loopback() && address.port() == bound.port, "{address}");
        }
    }
}
