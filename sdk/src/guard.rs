//! Catches a panic before it reaches the boundary.
//!
//! An unwinding panic that meets an `extern "C"` function ends the process, and a host cannot catch
//! one of a plugin: each library has its own runtime. So both sides run everything they offer to the
//! other inside [`guarded`], the dropping of results included.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; a panic in it, or in the drop of anything it owns, becomes its message.
///
/// Unwind safety is asserted: what `work` shares with the outside is either read-only or behind the
/// host's own locks, and a panicked call leaves nothing that a later call of the plugin uses.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(message)
}

/// The text of a panic's payload. The payload may be any value, also one whose drop panics in turn.
fn message(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not a text".to_owned()
    };
    let mut next = Some(payload);
    // A payload may panic with a payload that panics. After a few rounds leaking is the better end.
    for _ in 0..3 {
        let Some(payload) = next.take() else { break };
        next = catch_unwind(AssertUnwindSafe(move || drop(payload))).err();
    }
    std::mem::forget(next);
    text
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }

    #[test]
    fn every_kind_of_payload_becomes_a_message() {
        assert_eq!(guarded(|| -> u8 { panic!("plain") }), Err("plain".into()));
        assert_eq!(guarded(|| -> u8 { panic!("number {}", 7) }), Err("number 7".into()));
        assert_eq!(guarded(|| -> u8 { panic_any(7_u8) }), Err("a value that is not a text".into()));
        assert_eq!(guarded(|| 7), Ok(7));
    }

    #[test]
    fn a_payload_whose_drop_panics_is_contained() {
        for depth in [1, 2, 3, 50] {
            assert!(guarded(|| -> u8 { panic_any(Bomb(depth)) }).is_err(), "{depth}");
        }
    }

    #[test]
    fn a_panic_in_a_drop_after_success_is_caught() {
        let outcome = guarded(|| {
            let _last = Bomb(1);
            7
        });
        assert!(outcome.is_err());
    }
}
