//! The inside of the engine's process: the hidden command `udf-host sql-engine`.

use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::param::page_size;
use rustix::process::Resource;

use super::cells::Block;
use super::opened::Opened;
use super::session::{Filling, STACK, Session};
use super::wire::{ASK, Ask, BLOCK, END, REPLY, RUN, Reply, Said, other, receive, send};
use crate::processes::data_pages;
use crate::sql::answer::Answer;
use crate::sql::engine::Query;
use crate::sql::error::SqlError;
use crate::tether;

/// How often the limit of the database the whole process may have: for the values that the database does not count, the
/// rows of the result, and itself.
const ROOM: u64 = 4;
/// What each core adds to that: the database has a thread for it.
const PER_CORE: u64 = 16 << 20;

/// Runs statements for the host, with which this process ends. The socket to it is standard input. The database may have
/// `memory` bytes.
///
/// # Errors
/// The host is gone or does not speak as a host does, or the system refuses the precautions.
pub(crate) fn serve(library: &Path, memory: usize) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    tether::lead_a_group()?;
    end_with(&socket)?;
    tether::prefer_as_victim();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let most = memory as u64 * ROOM + cores * PER_CORE + STACK as u64;
    tether::limit(Resource::Data, most)?;
    tether::limit(Resource::Core, 0)?;
    let asks = BufReader::with_capacity(1 << 16, socket.try_clone()?);
    let mut replies = BufWriter::with_capacity(1 << 16, socket);
    let opened = match Opened::open(library, memory) {
        Ok(opened) => Arc::new(opened),
        Err(error) => return say(&mut replies, Said::error(error), true),
    };
    say(&mut replies, Said::Ready, false)?;
    let mut end = End { opened, asks, replies, frame: Vec::new(), much: most / 4 };
    while let Some(letter) = receive(&mut end.asks, &mut end.frame)? {
        if letter != ASK {
            return Err(other("no question"));
        }
        let ask: Ask = serde_json::from_slice(&end.frame)?;
        let last = match end.run(&ask)? {
            Ok(Some(Answer { columns, rows, count, cut })) => {
                let last = end.reply(Said::Answer { columns, count, cut })?;
                send(&mut end.replies, REPLY, rows.as_bytes())?;
                end.replies.flush()?;
                last
            }
            Ok(None) => false,
            Err(error) => end.reply(Said::error(error))?,
        };
        if last {
            break;
        }
    }
    // Not by way of destructors: a thread of a statement that ran out of time may be in the library still.
    std::process::exit(0)
}

fn say(to: &mut impl Write, said: Said, last: bool) -> io::Result<()> {
    send(to, REPLY, &serde_json::to_vec(&Reply { said, last })?)?;
    to.flush()
}

/// Ends this process when the other end of the socket is closed, also in the middle of a statement. Not by the signal that
/// the system has for that: it comes when the thread ends that started this process, and those of the host come and go.
fn end_with(socket: &UnixStream) -> io::Result<()> {
    let socket = socket.try_clone()?;
    tether::stand_by(move || {
        let mut closed = [PollFd::new(&socket, PollFlags::empty())];
        while !matches!(poll(&mut closed, None), Ok(1..)) {}
        tether::end_all();
    })
}

/// The database, and the socket as frames.
struct End {
    opened: Arc<Opened>,
    asks: BufReader<UnixStream>,
    replies: BufWriter<UnixStream>,
    frame: Vec<u8>,
    /// A quarter of the memory that the process may have.
    much: u64,
}

impl End {
    /// Runs a statement. `None` when it wants rows and has said so.
    fn run(&mut self, ask: &Ask) -> io::Result<Result<Option<Answer>, SqlError>> {
        let tables = ask.tables()?;
        let query = Query {
            sql: &ask.sql,
            tables: &tables,
            limits: &ask.limits,
            keep: ask.keep,
            spent: std::time::Duration::ZERO,
        };
        let session = match Session::begin(&self.opened, &query) {
            Ok(session) => session,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(wants) = session.wants() {
            self.reply(Said::wants(wants))?;
            return Ok(Ok(None));
        }
        self.reply(Said::Ready)?;
        if let Err(error) = self.fill(&session, &query)? {
            return Ok(Err(error));
        }
        Ok(session.answer().map(Some))
    }

    /// Takes the rows of all tables. They are taken to their end also when there is no room for them.
    fn fill(
        &mut self,
        session: &Session<'_>,
        query: &Query<'_>,
    ) -> io::Result<Result<(), SqlError>> {
        let mut outcome = Ok(());
        for (name, feed) in query.tables {
            let columns = feed.columns();
            let mut filling = outcome.and_then(|()| session.table(name, columns));
            loop {
                match receive(&mut self.asks, &mut self.frame)? {
                    Some(BLOCK) => {
                        let block = Block::of(&self.frame, columns.len());
                        let block = block.ok_or_else(|| other("no rows of this table"))?;
                        if let Err(error) = filling.as_mut().map_or(Ok(()), |it| it.add(&block)) {
                            filling = Err(error);
                        }
                    }
                    Some(END) => break,
                    _ => return Err(other("no rows")),
                }
            }
            outcome = filling.and_then(Filling::end);
        }
        match receive(&mut self.asks, &mut self.frame)? {
            Some(RUN) => Ok(outcome),
            _ => Err(other("no end of the rows")),
        }
    }

    /// Says it, and whether that was the last.
    fn reply(&mut self, said: Said) -> io::Result<bool> {
        let last = self.is_spoilt(&said) || self.has_much();
        say(&mut self.replies, said, last)?;
        Ok(last)
    }

    /// Whether no other statement can run here after such a reply.
    fn is_spoilt(&self, said: &Said) -> bool {
        match said {
            Said::Timeout | Said::Engine(_) => true,
            Said::Refused(_) => !self.opened.is_sound(),
            Said::Wants { .. } | Said::Ready | Said::Answer { .. } => false,
        }
    }

    /// Whether a fresh process had better run the next statement. What has been given back to the allocator alone counts
    /// for the system's limit all the same.
    fn has_much(&self) -> bool {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        data_pages(&text).is_some_and(|pages| pages * page_size() as u64 > self.much)
    }
}
