//! The inside of a worker: a child process of the host that runs operations, so that what they do to their process they
//! do to this one.
//!
//! - [`run`] is the hidden command `udf-host worker`. The socket to the host comes as standard input; there is no port, no
//!   token, and nothing to say on the command line.
//! - `serving` takes frames off that socket and runs each call on a thread of its own; `call` is one of them.
//! - `culprit` notes which of them ends this process.
//! - `libraries` opens artifacts, `limits` bounds what the process may take, `wear` tells how much of that is used up for
//!   good, `descriptors` keeps 0, 1 and 2 taken.
//!
//! Its life hangs on the socket: when the host closes it, or dies, this process ends and takes along whatever it started.

mod call;
mod culprit;
mod descriptors;
mod libraries;
mod limits;
mod serving;
mod wear;

use std::os::unix::net::UnixStream;

use core_store::{Durability, Store, StoreOptions};

use self::descriptors::Taken;
use self::serving::Serving;
use self::wear::Wear;
use crate::error::HostError;
use crate::lane::frames::{Incoming, ToWorker};
use crate::tether;

/// Serves the host until its end, which is also the end of this process.
///
/// # Errors
/// Standard input is no socket, or the host does not speak as a host does.
pub(crate) fn run() -> Result<std::convert::Infallible, HostError> {
    let Taken { socket, note, descriptors } =
        descriptors::take().map_err(|error| HostError::BadRequest {
            message: format!("`worker` is started by the host itself, not by hand ({error})"),
        })?;
    let socket = UnixStream::from(socket);
    let broken = |what: String| HostError::Internal {
        message: "the worker could not be started".to_owned(),
        detail: what,
    };
    tether::lead_a_group().map_err(|error| broken(error.to_string()))?;
    let mut incoming = Incoming::default();
    let hello = loop {
        match incoming.next().map_err(|error| broken(error.to_string()))? {
            Some(hello) => break hello,
            None if incoming.fill(&socket).map_err(|error| broken(error.to_string()))? == 0 => {
                tether::end_all()
            }
            None => {}
        }
    };
    let ToWorker::Hello { host, memory, synced } =
        hello.for_worker().map_err(|error| broken(error.to_string()))?
    else {
        return Err(broken("the first frame is another one".to_owned()));
    };
    limits::set(host, memory).map_err(|error| broken(error.to_string()))?;
    culprit::watch(note).map_err(|error| broken(error.to_string()))?;
    let durability = if synced { Durability::Full } else { Durability::Os };
    let store = Store::open(StoreOptions { durability });
    let serving = Serving::new(host, Wear::new(memory), socket, incoming, store, descriptors)
        .map_err(|error| broken(error.to_string()))?;
    serving.start().map_err(|error| broken(error.to_string()))?;
    // The threads do the rest. This one must stay: the process ends with it.
    loop {
        std::thread::park();
    }
}
