//! Where calls run: in a worker process nothing that an operation does to its process costs more than that call, and
//! nothing of it is left behind. In the host's own process a panic costs no more than the call either.

mod crashes;
mod deadlines;
mod inside;
mod life;
mod matrix;
mod processes;
mod statements;
mod surroundings;
mod troubled;

use std::time::Duration;

/// What a loaded machine may take for what should be there at once.
const LONG: Duration = Duration::from_secs(60);
