//! Notes which call ends this process. The note is a file in memory that the host reads when the process is gone: the
//! calls that only ran beside that one need not answer for it.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// The signals that a thread brings upon its own process.
const SIGNALS: [c_int; 7] = [
    libc::SIGABRT,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
];

thread_local! {
    /// The call that runs on this thread; 0 is none.
    static CALL: Cell<u64> = const { Cell::new(0) };
}

/// Where the note goes.
static NOTE: AtomicI32 = AtomicI32::new(-1);
static WRITTEN: AtomicBool = AtomicBool::new(false);
/// The handlers that were there before ours, in the order of [`SIGNALS`]; 0 is none.
static BEFORE: [AtomicUsize; SIGNALS.len()] = [const { AtomicUsize::new(0) }; SIGNALS.len()];

/// Says which call runs on this thread from now on; 0 is none.
pub(super) fn runs(call: u64) {
    CALL.set(call);
}

/// From here on whichever thread ends the process leaves its call's number in `note`.
///
/// # Errors
/// The system refuses.
pub(super) fn watch(note: OwnedFd) -> io::Result<()> {
    // Open for as long as the process lives.
    NOTE.store(note.into_raw_fd(), Ordering::Relaxed);
    for (signal, before) in SIGNALS.iter().zip(&BEFORE) {
        let mut old = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: all of the struct is plain numbers, for which zero is a value.
        let mut new: libc::sigaction = unsafe { mem::zeroed() };
        new.sa_sigaction = on_signal as *const () as usize;
        // On the stack for signals, since the thread's own may be what is used up.
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: both structs are ours, and `on_signal` has the form that `SA_SIGINFO` calls for.
        if unsafe { libc::sigaction(*signal, &raw const new, old.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above succeeded and filled it.
        let old = unsafe { old.assume_init() };
        let is_handler = old.sa_flags & libc::SA_SIGINFO != 0
            && old.sa_sigaction != libc::SIG_DFL
            && old.sa_sigaction != libc::SIG_IGN;
        before.store(if is_handler { old.sa_sigaction } else { 0 }, Ordering::Relaxed);
    }
    // SAFETY: the function takes nothing and lives as long as the process.
    if unsafe { libc::atexit(at_exit) } != 0 {
        return Err(io::Error::other("no room for what is done at the exit"));
    }
    Ok(())
}

/// Writes the note; the first one counts. Allocates nothing and takes no lock: this is for signal handlers.
fn write() {
    let call = CALL.get();
    if call == 0 || WRITTEN.swap(true, Ordering::Relaxed) {
        return;
    }
    let bytes = call.to_le_bytes();
    // SAFETY: the bytes outlive the call; a descriptor that is not open is an error that nobody needs to hear of.
    let _written = unsafe {
        libc::pwrite(NOTE.load(Ordering::Relaxed), bytes.as_ptr().cast::<c_void>(), bytes.len(), 0)
    };
}

extern "C" fn at_exit() {
    write();
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    write();
    let before = SIGNALS.iter().position(|it| *it == signal).map(|at| &BEFORE[at]);
    match before.map_or(0, |before| before.load(Ordering::Relaxed)) {
        0 => {
            // SAFETY: both may be called in a handler. The signal is blocked until this returns, and ends the process
            // then.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        before => {
            // SAFETY: it was installed with `SA_SIGINFO`, so it is a function of this form. It is the one of Rust's
            // runtime, which knows a used-up stack when it sees one and otherwise lets the signal end the process.
            let before = unsafe {
                mem::transmute::<*const (), extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(
                    ptr::with_exposed_provenance(before),
                )
            };
            before(signal, info, context);
        }
    }
}
