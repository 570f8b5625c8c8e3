//! [`Bell`]: rung by a signal's handler, heard by a thread.

use std::cell::UnsafeCell;
use std::io;

/// A semaphore of the system's, which is one of the few things that a signal's handler may use, and needs no descriptor
/// that an operation could close. It lives as long as the process.
#[derive(Clone, Copy)]
pub(super) struct Bell(&'static UnsafeCell<libc::sem_t>);

// SAFETY: the semaphore is used only through functions that are made for many threads.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// One that nobody has rung.
    ///
    /// # Errors
    /// The system gives none.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: the struct is plain bytes, for which zero is a value.
        let semaphore: libc::sem_t = unsafe { std::mem::zeroed() };
        let place: &'static UnsafeCell<_> = Box::leak(Box::new(UnsafeCell::new(semaphore)));
        // SAFETY: the place never moves or ends, and nobody else knows it yet.
        match unsafe { libc::sem_init(place.get(), 0, 0) } {
            0 => Ok(Self(place)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until it is rung, or has been.
    pub(super) fn wait(self) {
        // SAFETY: `new` has initialised it. What interrupts the wait is no ring.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
    }

    /// Rings it. For signal handlers: nothing else happens here.
    pub(super) fn ring(self) {
        // SAFETY: `new` has initialised it.
        unsafe { libc::sem_post(self.0.get()) };
    }
}
