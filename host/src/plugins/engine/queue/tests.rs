use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use super::*;
use crate::plugins::Address;
use crate::plugins::catalog::{Entry, EntryState};
use crate::plugins::engine::work::Buildable;
use crate::plugins::manifest::OpSettings;
use crate::plugins::refusal::Refusal;
use crate::plugins::stamp::Key;
use crate::plugins::versions::Versions;

/// An operation `project/op` that is to be built.
fn stale(name: &str) -> Stale {
    let (project, op) = name.split_once('/').unwrap();
    let address = Address::new("w", project, op);
    let (folder, spec, settings) = (PathBuf::from(name), String::new(), OpSettings::default());
    let entry = Entry::new(address, folder, spec, settings, Versions::new(1), EntryState::Building);
    let op = Buildable { entry: Arc::new(entry), package: name.to_owned(), root: 0 };
    let key = Key { all: String::new(), own: String::new(), newest: UNIX_EPOCH };
    Stale { op, key, hidden: None }
}

fn all() -> Vec<Stale> {
    ["a/1", "a/2", "b/1", "b/2", "c/1"].map(stale).into()
}

fn names(batch: &[Stale]) -> Vec<&str> {
    batch.iter().map(|stale| &*stale.op.package).collect()
}

#[track_caller]
fn find<'a>(batch: &'a [Stale], name: &str) -> &'a Stale {
    batch.iter().find(|stale| stale.op.package == name).unwrap()
}

#[track_caller]
fn want(batch: &[Stale], name: &str) {
    assert!(!find(batch, name).op.entry.is_decided(), "{name}");
}

/// Says that it came no further for as long as a batch may take.
fn age(queue: &mut Queue) {
    age_by(queue, HEAD_START);
}

fn age_by(queue: &mut Queue, time: Duration) {
    queue.further = Instant::now().checked_sub(time).unwrap();
}

fn together(mut batch: Vec<Stale>, others: Vec<Stale>) -> Vec<Stale> {
    batch.extend(others);
    batch
}

#[test]
fn what_is_waited_for_comes_first_then_its_project_then_the_rest() {
    let mut queue = Queue::new(5);
    let stale = all();
    want(&stale, "b/2");
    let (batch, after) = queue.next(stale);
    assert_eq!((names(&batch), names(&after)), (vec!["b/2"], vec!["a/1", "a/2", "b/1", "c/1"]));
    assert!(!queue.gives_way(0, &batch, &after));
    let (batch, after) = queue.next(after);
    assert_eq!((names(&batch), names(&after)), (vec!["b/1"], vec!["a/1", "a/2", "c/1"]));
    let (batch, after) = queue.next(after);
    assert_eq!((names(&batch), names(&after)), (vec!["a/1", "a/2", "c/1"], vec![]));
    age(&mut queue);
    assert!(!queue.gives_way(1, &batch, &after), "nothing is held up");
}

#[test]
fn a_batch_is_left_for_what_is_waited_for_a_few_times() {
    let mut queue = Queue::new(5);
    let (batch, after) = queue.next(all());
    assert_eq!(names(&batch).len(), 5);
    assert!(!queue.gives_way(1, &batch, &after), "nobody waits");
    want(&batch, "b/1");
    queue.begins("b/1");
    assert!(!queue.gives_way(1, &batch, &after), "it has its turn");
    want(&batch, "b/2");
    age_by(&mut queue, YOUNG);
    assert!(!queue.gives_way(0, &batch, &after), "what all need may be half done");
    assert!(queue.gives_way(1, &batch, &after));
    let (batch, after) = queue.next(together(batch, after));
    assert_eq!(names(&batch), ["b/1", "b/2"]);
    want(&after, "c/1");
    assert!(!queue.gives_way(1, &batch, &after), "those of the batch are waited for, too");
    let refusal = Arc::from(Refusal::new("no", "yes"));
    let catalog = crate::plugins::catalog::Catalog::default();
    catalog.refuse(&find(&after, "c/1").op.entry, Arc::clone(&refusal));
    for again in 1..=MOST {
        let (batch, _) = queue.next(["b/3", "b/4", "b/5"].map(stale).into());
        want(&batch, "b/4");
        // It has only begun: there is nothing to lose.
        assert_eq!(queue.gives_way(0, &batch, &[]), again < MOST, "{again}");
        // A version that is there, or is refused, is waited for no more.
        catalog.refuse(&find(&batch, "b/4").op.entry, Arc::clone(&refusal));
        assert!(!find(&batch, "b/4").op.entry.is_wanted());
    }
}

#[test]
fn what_takes_too_long_is_built_beside_the_others_and_holds_up_nobody_who_waits() {
    let mut queue = Queue::new(5);
    let stale = all();
    ["a/1", "a/2", "b/1"].iter().for_each(|name| want(&stale, name));
    let (batch, after) = queue.next(stale);
    assert_eq!(names(&batch), ["a/1", "a/2", "b/1"]);
    queue.begins("a/2");
    age(&mut queue);
    queue.is_blocked();
    assert!(!queue.gives_way(0, &batch, &after), "another cargo takes as long as it takes");
    queue.goes_on();
    assert!(!queue.gives_way(0, &batch, &after), "it has only begun");
    age(&mut queue);
    queue.came_further();
    assert!(!queue.gives_way(1, &batch, &after), "one of them is done");
    age(&mut queue);
    assert!(queue.gives_way(0, &batch, &after));
    // The one that is at work is slow; the others are still waited for.
    let (batch, after) = queue.next(together(batch, after));
    assert_eq!(names(&batch), ["a/1", "b/1"]);
    age(&mut queue);
    assert!(queue.gives_way(0, &batch, &after), "whatever it is that they need");
    let (batch, after) = queue.next(together(batch, after));
    assert_eq!((names(&batch).len(), names(&after).len()), (5, 0));
    want(&batch, "c/1");
    age_by(&mut queue, YOUNG);
    assert!(!queue.gives_way(0, &batch, &after));
    age(&mut queue);
    assert!(queue.gives_way(0, &batch, &after), "the slow ones may hold up all");
    let (batch, _) = queue.next(together(batch, after));
    assert_eq!(names(&batch), ["c/1"]);
}
