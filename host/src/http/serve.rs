//! The router on its sockets: accepts, watches connections, ends in good order.
//!
//! One [`Connection`] per socket says what phase it is in. Requests only store to it; a janitor that wakes once a second
//! (while there is a connection at all) compares it with the limits, so that no request pays for a timer.

mod connection;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};

use super::{Bound, Router};
use crate::envelope;
use connection::{BODY, BUSY, CLOSE, Connection, FINISH, HEAD, IDLE, REPLY, Upload, Watched};

/// Connections at one time; the next one is told to come back.
pub(super) const MAX_CONNECTIONS: usize = 1024;
/// Request head in bytes: longer than any real query, shorter than an attack.
const MAX_HEAD: usize = 64 << 10;
const MAX_FIELDS: usize = 100;
/// How long what may take. The janitor looks four times within the shortest, once a second at most.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// From the first byte of a request to the end of its head.
    head: Duration,
    /// A pause within a body, or of the reader of a reply.
    pause: Duration,
    /// A kept connection without requests. Clients drop theirs after four seconds or so; pools keep them for minutes.
    idle: Duration,
}

const LIMITS: Limits = Limits {
    head: Duration::from_secs(15),
    pause: Duration::from_secs(30),
    idle: Duration::from_secs(120),
};

/// How long an ending host waits for calls that are running.
const GRACE: Duration = Duration::from_secs(10);

/// Ends [`serve`]: stops accepting, lets running requests finish, closes the rest.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<bool>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Shutdown {
    /// Begins the end; calling it again changes nothing.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether the end has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the begin of the end.
    pub async fn begun(&self) {
        // The sender lives in `self`, so the wait cannot fail.
        let mut watching = self.0.subscribe();
        let _ended = watching.wait_for(|begun| *begun).await;
    }
}

/// Serves until `shutdown` begins and the requests that run then have been answered, at most ten seconds later.
/// Idle connections do not delay the end.
///
/// # Errors
/// The sockets cannot be taken up by the runtime.
pub async fn serve(bound: Bound, router: Router, shutdown: Shutdown) -> io::Result<()> {
    serve_within(LIMITS, bound, router, shutdown).await
}

async fn serve_within(
    limits: Limits,
    bound: Bound,
    router: Router,
    shutdown: Shutdown,
) -> io::Result<()> {
    let server = Arc::new(Server::new(router, limits));
    let mut accepting = Vec::new();
    for socket in bound.sockets {
        let listener = TcpListener::from_std(socket)?;
        accepting.push(tokio::spawn(Arc::clone(&server).accept(listener)));
    }
    let janitor = tokio::spawn(Arc::clone(&server).watch());
    shutdown.begun().await;
    for task in accepting {
        task.abort();
    }
    janitor.abort();
    server.end().await;
    Ok(())
}

struct Server {
    router: Router,
    http: http1::Builder,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    limits: Limits,
    started: Instant,
    /// Milliseconds since the start when last somebody looked at the real clock.
    clock: Arc<AtomicU64>,
    changed: Notify,
}

impl Server {
    fn new(router: Router, limits: Limits) -> Server {
        let mut http = http1::Builder::new();
        // Limits in time are the janitor's.
        http.max_buf_size(MAX_HEAD)
            .max_headers(MAX_FIELDS)
            .header_read_timeout(None)
            .half_close(false);
        Server {
            router,
            http,
            connections: Mutex::default(),
            next: AtomicU64::new(0),
            limits,
            started: Instant::now(),
            clock: Arc::default(),
            changed: Notify::new(),
        }
    }

    /// Sets the clock by which connections are judged.
    fn look_at_the_clock(&self) -> u64 {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.clock.store(now, Relaxed);
        now
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let mut complained = false;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    complained = false;
                    Arc::clone(&self).take(stream);
                }
                // The peer was gone before we looked.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    // Out of open files, most likely: it passes, and one line is enough until it has.
                    if !std::mem::replace(&mut complained, true) {
                        tracing::error!(%error, "cannot accept connections");
                    }
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn take(self: Arc<Self>, stream: TcpStream) {
        // A failure here only costs speed.
        let _slower = stream.set_nodelay(true);
        let key = self.next.fetch_add(1, Relaxed);
        let connection = Arc::new(Connection {
            phase: AtomicU8::new(IDLE),
            // The janitor may have slept since long ago, and its clock with it.
            since: AtomicU64::new(self.look_at_the_clock()),
            order: AtomicU8::new(0),
            ordered: Notify::new(),
            clock: Arc::clone(&self.clock),
        });
        {
            let mut connections = self.connections();
            if connections.len() >= MAX_CONNECTIONS {
                drop(connections);
                tokio::spawn(turn_away(stream));
                return;
            }
            connections.insert(key, Arc::clone(&connection));
        }
        self.changed.notify_one();
        tokio::spawn(async move {
            self.run(stream, &connection).await;
            self.connections().remove(&key);
            self.changed.notify_one();
        });
    }

    async fn run(&self, stream: TcpStream, connection: &Arc<Connection>) {
        let service = service_fn(|request: Request<Incoming>| async move {
            connection.enter(BUSY);
            let response =
                self.router.handle(request.map(|inner| Upload { inner, connection })).await;
            connection.enter(REPLY);
            Ok::<_, Infallible>(response)
        });
        let io = Watched { inner: TokioIo::new(stream), connection: Arc::clone(connection) };
        let mut serving = pin!(self.http.serve_connection(io, service));
        loop {
            tokio::select! {
                // A broken connection is the peer's business; the router has logged what matters of the request.
                _ended = serving.as_mut() => return,
                () = connection.ordered.notified() => match connection.order.load(Relaxed) {
                    CLOSE => return,
                    _ => serving.as_mut().graceful_shutdown(),
                },
            }
        }
    }

    /// Closes what takes too long. Sleeps for good while there is no connection.
    async fn watch(self: Arc<Self>) {
        let Limits { head, pause, idle } = self.limits;
        let step = (head.min(pause).min(idle) / 4).min(Duration::from_secs(1));
        loop {
            if self.connections().is_empty() {
                self.changed.notified().await;
            }
            let now = self.look_at_the_clock();
            for connection in self.connections().values() {
                let waited =
                    Duration::from_millis(now.saturating_sub(connection.since.load(Relaxed)));
                match connection.phase.load(Relaxed) {
                    IDLE if waited > idle => connection.order(FINISH),
                    HEAD if waited > head => connection.order(CLOSE),
                    BODY | REPLY if waited > pause => connection.order(CLOSE),
                    _ => {}
                }
            }
            sleep(step).await;
        }
    }

    async fn end(&self) {
        let deadline = Instant::now() + GRACE;
        let mut first = true;
        loop {
            {
                let connections = self.connections();
                if connections.is_empty() {
                    return;
                }
                for connection in connections.values() {
                    let may_finish = connection.is_busy() && Instant::now() < deadline;
                    // An idle connection closes at the first word; what is left then has sent half a head at most.
                    connection.order(if first || may_finish { FINISH } else { CLOSE });
                }
            }
            first = false;
            let _either = timeout(Duration::from_millis(50), self.changed.notified()).await;
        }
    }
}

/// Connections too many that are being told so; those beyond are closed without a word.
static TURNED_AWAY: Semaphore = Semaphore::const_new(256);

/// 503 to a connection too many, without ever looking at its request. What it sends meanwhile is taken and dropped for
/// a moment: closing on unread bytes would reset the connection, and the reply with it.
async fn turn_away(mut stream: TcpStream) {
    let Ok(_place) = TURNED_AWAY.try_acquire() else { return };
    let body = envelope::render_error("overloaded: too many connections; try again in a moment");
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    let reply = [head.as_bytes(), &body].concat();
    let _gone = timeout(Duration::from_secs(1), async {
        stream.write_all(&reply).await?;
        stream.shutdown().await?;
        let mut dropped = [0; 4096];
        while stream.read(&mut dropped).await? > 0 {}
        Ok::<_, std::io::Error>(())
    })
    .await;
}

/// Serves within limits that a test can wait for.
#[cfg(test)]
pub(crate) async fn serve_hurriedly(
    bound: Bound,
    router: Router,
    shutdown: Shutdown,
) -> io::Result<()> {
    let short = Duration::from_millis(400);
    serve_within(Limits { head: short, pause: short, idle: short }, bound, router, shutdown).await
}
