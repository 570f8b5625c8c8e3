//! The network as the adapters see it: one request, and waiting until a server wants the next.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sdk::{Context, HttpReply, HttpRequest, UdfError};

/// Sends requests.
pub(crate) trait Web {
    /// One request, one answer; redirects are not followed.
    ///
    /// # Errors
    /// No whole answer in time; whether the server has acted is unknown.
    fn send(&self, request: &HttpRequest) -> Result<HttpReply, UdfError>;

    /// Waits.
    fn pause(&self, time: Duration);

    /// Seconds since 1970, now.
    fn unix_now(&self) -> u64;
}

impl Web for Context {
    fn send(&self, request: &HttpRequest) -> Result<HttpReply, UdfError> {
        self.http(request)
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn unix_now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}
