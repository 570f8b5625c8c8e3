use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use super::super::frames::FromWorker;
use super::*;

const LONG: Duration = Duration::from_secs(60);

fn pair() -> (Link, UnixStream) {
    let (link, theirs) = Link::pair().unwrap();
    (link, UnixStream::from(theirs))
}

fn reply(call: u64) -> Vec<u8> {
    let outcome = Ok(&call.to_le_bytes()[..]);
    FromWorker::Reply { outcome, beyond: false, leftovers: false, worn: false }.encode(call)
}

#[test]
fn every_call_gets_its_own_frames_whoever_reads_them() {
    let (link, mut theirs) = pair();
    const CALLS: u64 = 8;
    const ROUNDS: usize = 200;
    (0..CALLS).for_each(|call| link.take_seat(call));
    let link = &link;
    thread::scope(|scope| {
        for call in 0..CALLS {
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let Next::Frame(frame) = link.next(call, Instant::now() + LONG) else {
                        panic!("no frame for {call}")
                    };
                    let FromWorker::Reply { outcome, .. } = frame.of_worker().unwrap() else {
                        panic!("not a reply")
                    };
                    assert_eq!(outcome, Ok(&call.to_le_bytes()[..]));
                }
                link.leave(call);
            });
        }
        for round in 0..ROUNDS as u64 {
            for call in 0..CALLS {
                theirs.write_all(&reply((call + round) % CALLS)).unwrap();
            }
        }
    });
}

#[test]
fn a_wait_ends_at_its_time_and_at_the_end_of_the_worker() {
    let (link, theirs) = pair();
    link.take_seat(1);
    let soon = Instant::now() + Duration::from_millis(20);
    assert!(matches!(link.next(1, soon), Next::Late));
    thread::scope(|scope| {
        scope.spawn(|| assert!(matches!(link.next(1, Instant::now() + LONG), Next::Lost)));
        drop(theirs);
    });
    assert!(link.is_lost());
    assert!(matches!(link.send(b"x", Instant::now() + LONG), Err(Unsent::Lost)));
}

#[test]
fn what_was_sent_before_the_end_still_arrives() {
    let (link, mut theirs) = pair();
    link.take_seat(1);
    theirs.write_all(&reply(1)).unwrap();
    link.lose();
    assert!(link.is_lost());
    assert!(matches!(link.next(1, Instant::now() + LONG), Next::Frame(_)));
    assert!(matches!(link.next(1, Instant::now() + LONG), Next::Lost));
}

#[test]
fn a_worker_that_talks_without_end_does_not_fill_the_memory() {
    let (link, mut theirs) = pair();
    (1..=2).for_each(|call| link.take_seat(call));
    let line = FromWorker::Request { request: 0, method: 1, frame: b"a line" }.encode(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..10_000).for_each(|_| theirs.write_all(&line).unwrap());
            theirs.write_all(&reply(1)).unwrap();
            theirs.write_all(&reply(2)).unwrap();
        });
        // The other call reads for both.
        assert!(matches!(link.next(2, Instant::now() + LONG), Next::Frame(_)));
    });
    let mut got = 0;
    while let Next::Frame(frame) = link.next(1, Instant::now() + LONG) {
        got += 1;
        if !frame.wants_no_answer() {
            break;
        }
    }
    assert_eq!((got, link.leave(1)), (MOST_UNREAD + 1, 10_000 - MOST_UNREAD));
}

#[test]
fn a_worker_that_does_not_read_holds_nobody_up_for_longer_than_the_call_has() {
    let (link, mut theirs) = pair();
    let soon = || Instant::now() + Duration::from_millis(30);
    let piece = vec![7; 4096];
    while link.send(&piece, soon()).is_ok() {}
    assert!(matches!(link.send(&piece, soon()), Err(Unsent::Late)), "nothing of it was sent");
    thread::scope(|scope| {
        scope.spawn(|| link.send(&piece, Instant::now() + Duration::from_secs(1)));
        let began = Instant::now();
        assert!(matches!(link.send(&piece, soon()), Err(Unsent::Late)));
        assert!(began.elapsed() < Duration::from_millis(900), "it waited for the one before it");
    });
    theirs.read_exact(&mut vec![0; 64 << 10]).unwrap();
    let large = vec![7; 1 << 20];
    assert!(matches!(link.send(&large, soon()), Err(Unsent::Lost)), "half of it was sent");
    assert!(link.is_lost(), "nothing can follow that");
}
