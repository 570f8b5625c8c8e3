//! What goes over the socket between the host and a worker.
//!
//! A frame is the `u32` length of what follows (little-endian), a byte that says which kind, the `u64` number of the call
//! it belongs to, and the fields of its kind in the form of [`sdk::wire`]. Both ends are the same binary, so a frame
//! that cannot be read means that the other end is broken, never that it is of another version.

use std::io::{self, Read};

use sdk::wire::{Reader, Wire, WireError, Writer};

/// A frame beyond this is taken for noise. Far above any reply that is sent on.
pub(crate) const MAX_FRAME: usize = 256 << 20;

/// Kind and number of the call.
const HEAD: usize = 1 + 8;

/// What the host says to a worker.
#[derive(Debug, PartialEq)]
pub(crate) enum ToWorker<'a> {
    /// The first frame.
    Hello {
        /// Process id of the host, whose end is the worker's.
        host: u32,
        /// Bytes of memory the worker may have.
        memory: u64,
        /// Whether a write is synced before it is acknowledged.
        synced: bool,
    },
    /// Run an operation.
    Run(Run<'a>),
    /// Nobody wants the answer any more.
    Cancel,
    /// The answer to a [`FromWorker::Request`].
    Answer {
        /// The request's number.
        request: u64,
        /// A reply frame, or an error frame.
        outcome: Result<&'a [u8], &'a [u8]>,
    },
}

/// One call.
#[derive(Debug, PartialEq)]
pub(crate) struct Run<'a> {
    /// `workspace.project.op`.
    pub(crate) op: &'a str,
    /// The checked copy to open.
    pub(crate) artifact: &'a str,
    /// The state folder.
    pub(crate) app_dir: &'a str,
    /// Microseconds until the answer is due.
    pub(crate) left_us: u64,
    /// Whether the call must change nothing.
    pub(crate) reading: bool,
    /// Name and text of each parameter.
    pub(crate) params: Vec<(&'a str, &'a str)>,
}

/// What a worker says to the host.
#[derive(Debug, PartialEq)]
pub(crate) enum FromWorker<'a> {
    /// The end of a call.
    Reply {
        /// A reply frame, or an error frame.
        outcome: Result<&'a [u8], &'a [u8]>,
        /// Whether it asked for more than collections (see [`crate::dispatch::Reading`]).
        beyond: bool,
        /// Whether processes that the worker started are still there.
        leftovers: bool,
        /// Whether what operations left behind in it is so much that it had better be replaced.
        worn: bool,
    },
    /// There is no thread for the call here: it has not begun.
    NoRoom,
    /// Something that only the host can do.
    Request {
        /// Names the answer; none is expected for 0.
        request: u64,
        /// Number of the method, as in [`sdk::abi::Method`].
        method: u32,
        /// The method's frame.
        frame: &'a [u8],
    },
}

const HELLO: u8 = 1;
const RUN: u8 = 2;
const CANCEL: u8 = 3;
const ANSWER: u8 = 4;
const REPLY: u8 = 5;
const REQUEST: u8 = 6;
const NO_ROOM: u8 = 7;

/// A frame as it came, not yet read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The call it belongs to.
    pub(crate) call: u64,
    kind: u8,
    fields: Vec<u8>,
}

impl ToWorker<'_> {
    /// The bytes of the frame.
    pub(crate) fn encode(&self, call: u64) -> Vec<u8> {
        match self {
            Self::Hello { host, memory, synced } => frame(HELLO, call, |out| {
                out.put(host);
                out.put(memory);
                out.put(synced);
            }),
            Self::Run(run) => frame(RUN, call, |out| {
                out.put(&run.op);
                out.put(&run.artifact);
                out.put(&run.app_dir);
                out.put(&run.left_us);
                out.put(&run.reading);
                out.put(&run.params);
            }),
            Self::Cancel => frame(CANCEL, call, |_| {}),
            Self::Answer { request, outcome } => frame(ANSWER, call, |out| {
                out.put(request);
                put_outcome(out, outcome);
            }),
        }
    }
}

impl FromWorker<'_> {
    /// The bytes of the frame.
    pub(crate) fn encode(&self, call: u64) -> Vec<u8> {
        match self {
            Self::Reply { outcome, beyond, leftovers, worn } => frame(REPLY, call, |out| {
                out.put(beyond);
                out.put(leftovers);
                out.put(worn);
                put_outcome(out, outcome);
            }),
            Self::NoRoom => frame(NO_ROOM, call, |_| {}),
            Self::Request { request, method, frame: bytes } => frame(REQUEST, call, |out| {
                out.put(request);
                out.put(method);
                out.put_raw(bytes);
            }),
        }
    }
}

impl Frame {
    /// Whether it is a request that expects no answer: a line for the log.
    pub(crate) fn wants_no_answer(&self) -> bool {
        self.kind == REQUEST && self.fields.starts_with(&0_u64.to_le_bytes())
    }

    /// Reads a frame of the host's.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn for_worker(&self) -> Result<ToWorker<'_>, Unreadable> {
        let mut fields = Reader::new(&self.fields);
        let from = &mut fields;
        Ok(match self.kind {
            HELLO => ToWorker::Hello {
                host: Wire::take(from)?,
                memory: Wire::take(from)?,
                synced: Wire::take(from)?,
            },
            RUN => ToWorker::Run(Run {
                op: Wire::take(from)?,
                artifact: Wire::take(from)?,
                app_dir: Wire::take(from)?,
                left_us: Wire::take(from)?,
                reading: Wire::take(from)?,
                params: Wire::take(from)?,
            }),
            CANCEL => ToWorker::Cancel,
            ANSWER => ToWorker::Answer { request: Wire::take(from)?, outcome: take_outcome(from)? },
            _ => return Err(Unreadable),
        })
    }

    /// Reads a frame of a worker's.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn of_worker(&self) -> Result<FromWorker<'_>, Unreadable> {
        let mut fields = Reader::new(&self.fields);
        let from = &mut fields;
        Ok(match self.kind {
            REPLY => FromWorker::Reply {
                beyond: Wire::take(from)?,
                leftovers: Wire::take(from)?,
                worn: Wire::take(from)?,
                outcome: take_outcome(from)?,
            },
            NO_ROOM => FromWorker::NoRoom,
            REQUEST => FromWorker::Request {
                request: Wire::take(from)?,
                method: Wire::take(from)?,
                frame: from.rest(),
            },
            _ => return Err(Unreadable),
        })
    }
}

fn frame(kind: u8, call: u64, fields: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::default();
    // Its place; the length is known at the end.
    out.put(&0_u32);
    out.put(&kind);
    out.put(&call);
    fields(&mut out);
    let mut bytes = out.into_bytes();
    // One that does not fit is refused by its reader, as any other beyond `MAX_FRAME`.
    let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

fn put_outcome(out: &mut Writer, outcome: &Result<&[u8], &[u8]>) {
    out.put(&outcome.is_ok());
    match outcome {
        Ok(bytes) | Err(bytes) => out.put_raw(bytes),
    }
}

fn take_outcome<'a>(from: &mut Reader<'a>) -> Result<Result<&'a [u8], &'a [u8]>, WireError> {
    let good = bool::take(from)?;
    let bytes = from.rest();
    Ok(if good { Ok(bytes) } else { Err(bytes) })
}

/// A frame that is none of those that this end expects.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end of a worker's socket sent what cannot be read")]
pub(crate) struct Unreadable;

impl From<WireError> for Unreadable {
    fn from(_: WireError) -> Self {
        Self
    }
}

/// Cuts what comes out of a socket into frames.
#[derive(Debug)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    start: usize,
    piece: Box<[u8]>,
}

impl Default for Incoming {
    fn default() -> Self {
        Self { bytes: Vec::new(), start: 0, piece: vec![0; 64 << 10].into() }
    }
}

impl Incoming {
    /// The next whole frame, if it is there.
    ///
    /// # Errors
    /// The bytes are no frames.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame>> {
        let there = &self.bytes[self.start..];
        let Some((length, rest)) = there.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if !(HEAD..=MAX_FRAME).contains(&length) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a frame"));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let (head, fields) = body.split_at(HEAD);
        let call = u64::decode(&head[1..]).map_err(io::Error::other)?;
        let frame = Frame { kind: head[0], call, fields: fields.to_vec() };
        self.start += 4 + length;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            // One large frame is no reason to keep its memory.
            self.bytes.shrink_to(1 << 20);
        }
        Ok(Some(frame))
    }

    /// Reads once; how many bytes came, 0 at the end of the stream.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn fill(&mut self, mut from: impl Read) -> io::Result<usize> {
        let read = from.read(&mut self.piece)?;
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(&self.piece[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
