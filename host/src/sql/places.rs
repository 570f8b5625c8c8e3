//! `Places`: how many requests are worked on at a time. Statements are work for a core, and each may hold much memory;
//! one that waits for an operation is neither, and gives its place to another for as long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that are worked on at a time, for each core.
const PER_CORE: usize = 4;

/// The places there are.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    all: usize,
    /// How long a request waits for one.
    patience: Duration,
}

impl Places {
    pub(super) fn new(patience: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let all = cores * PER_CORE;
        Self { free: Arc::new(Semaphore::new(all)), all, patience }
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// None became free in time.
    pub(super) async fn take(self: &Arc<Self>) -> Result<Place, Overloaded> {
        let permit = self.permit().await?;
        let held = Mutex::new(Held { permit: Some(permit), outside: 0 });
        Ok(Place { places: Arc::clone(self), runtime: Handle::current(), held })
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, Overloaded> {
        let permit = Arc::clone(&self.free).acquire_owned();
        match tokio::time::timeout(self.patience, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Overloaded { all: self.all, waited: self.patience }),
        }
    }
}

/// The place of one request, from whose threads it may be left and taken again.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    runtime: Handle,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    permit: Option<OwnedSemaphorePermit>,
    /// Threads of the request that wait for something other than this place.
    outside: usize,
}

/// No place became free in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("overloaded: {all} statements are running already, and none ended within {} s; try again in a moment", waited.as_secs_f64())]
pub struct Overloaded {
    all: usize,
    waited: Duration,
}

impl Place {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread of the request begins to wait: somebody else may have the place.
    pub(super) fn leave(&self) {
        let mut held = self.held();
        held.outside += 1;
        held.permit = None;
    }

    /// It has waited to the end, and goes on working; the last one that comes back takes a place again. Not for a thread
    /// of the runtime.
    ///
    /// # Errors
    /// None became free in time.
    pub(super) fn come_back(&self) -> Result<(), Overloaded> {
        let mut held = self.held();
        held.outside -= 1;
        if held.outside > 0 || held.permit.is_some() {
            return Ok(());
        }
        drop(held);
        let permit = self.runtime.block_on(self.places.permit())?;
        let mut held = self.held();
        // Another thread may have begun to wait meanwhile.
        held.permit = (held.outside == 0).then_some(permit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_outside_leaves_its_place_to_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        let places = Arc::new(Places::new(Duration::from_millis(20)));
        let take = || runtime.block_on(places.take());
        let mut taken: Vec<Place> = (0..places.all).map(|_| take().unwrap()).collect();
        let refused = take().unwrap_err();
        assert!(refused.to_string().contains("statements are running"), "{refused}");

        let waits = taken.pop().unwrap();
        waits.leave();
        waits.leave();
        taken.push(take().unwrap());
        assert_eq!(waits.come_back(), Ok(()), "another thread of it still waits outside");
        assert_eq!(waits.come_back(), Err(refused), "there is no place to come back to");
        taken.pop();
        waits.leave();
        assert_eq!(waits.come_back(), Ok(()));
        assert!(take().is_err(), "it has its place again");
    }
}
