//! What one socket is doing, as its own bytes tell.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// What one socket is doing.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) phase: AtomicU8,
    /// When the phase began, or for a body when its last bytes came; by the server's clock.
    pub(super) since: AtomicU64,
    pub(super) order: AtomicU8,
    pub(super) ordered: Notify,
    pub(super) clock: Arc<AtomicU64>,
}

/// Waiting for the first byte of a request.
pub(super) const IDLE: u8 = 0;
/// Between the first byte of a request and the end of its head.
pub(super) const HEAD: u8 = 1;
/// The router waits for more of the body.
pub(super) const BODY: u8 = 2;
/// The router has the request.
pub(super) const BUSY: u8 = 3;
/// The reply is on its way out.
pub(super) const REPLY: u8 = 4;

/// Finish the request that runs, take no other.
pub(super) const FINISH: u8 = 1;
/// Close now.
pub(super) const CLOSE: u8 = 2;

impl Connection {
    pub(super) fn enter(&self, phase: u8) {
        self.since.store(self.clock.load(Relaxed), Relaxed);
        self.phase.store(phase, Relaxed);
    }

    fn bytes_came(&self) {
        match self.phase.load(Relaxed) {
            IDLE => self.enter(HEAD),
            BODY => self.enter(BODY),
            _ => {}
        }
    }

    fn bytes_went(&self) {
        if self.phase.load(Relaxed) == REPLY {
            self.enter(REPLY);
        }
    }

    fn all_bytes_went(&self) {
        if self.phase.load(Relaxed) == REPLY {
            self.enter(IDLE);
        }
    }

    /// Whether a request is between its head and the last byte of its reply.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.phase.load(Relaxed), BODY | BUSY | REPLY)
    }

    pub(super) fn order(&self, order: u8) {
        self.order.fetch_max(order, Relaxed);
        self.ordered.notify_one();
    }
}

/// A request body, telling its [`Connection`] when the router has to wait for it.
pub(super) struct Upload<'a> {
    pub(super) inner: Incoming,
    pub(super) connection: &'a Connection,
}

impl Body for Upload<'_> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        let phase = if polled.is_pending() { BODY } else { BUSY };
        if self.connection.phase.load(Relaxed) != phase {
            self.connection.enter(phase);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The socket, telling its [`Connection`] when bytes come.
pub(super) struct Watched {
    pub(super) inner: TokioIo<TcpStream>,
    pub(super) connection: Arc<Connection>,
}

impl Read for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) {
            self.connection.bytes_came();
        }
        polled
    }
}

impl Write for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.connection.bytes_went();
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        if polled.is_ready() {
            self.connection.all_bytes_went();
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.connection.bytes_went();
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }
}
