#![expect(clippy::disallowed_methods, reason = "tests lay out folders of their own")]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::mpsc::channel;

use super::*;
use crate::plugins::build::Running;

/// Long enough for any machine; a wait that ends earlier is what is tested.
const SOON: Duration = Duration::from_secs(20);

struct Scene {
    tree: tempfile::TempDir,
    watch: Watch,
    watched: Watched,
}

impl Scene {
    fn new() -> Self {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap().join("udfs");
        fs::create_dir_all(root.join("p/op/src")).unwrap();
        fs::write(root.join("p/op/src/lib.rs"), "1").unwrap();
        let (nudges, told) = channel();
        let watch = Watch::start(nudges, told, Running::default());
        let watched = Watched { roots: vec![root.clone()], awaited: vec![root] };
        let mut scene = Self { tree, watch, watched };
        scene.follow();
        scene
    }

    fn at(&self, path: &str) -> PathBuf {
        self.watched.roots[0].join(path)
    }

    /// Watches all there is, and forgets what was told before.
    fn follow(&mut self) {
        while self.watch.follow(&self.watched) {}
        while self.watch.told.recv_timeout(Duration::from_millis(100)).is_ok() {}
    }

    #[track_caller]
    fn is_told(&mut self, what: &str) {
        assert_eq!(self.watch.told.recv_timeout(SOON), Ok(Nudge::Changed), "{what}");
        self.follow();
    }

    /// That something is *not* told is seen by a change after it that is.
    #[track_caller]
    fn is_not_told(&mut self, what: &str) {
        let quiet = self.watch.told.recv_timeout(Duration::from_millis(200));
        assert!(quiet.is_err(), "{what}");
    }
}

#[test]
fn every_way_of_saving_is_told() {
    let mut scene = Scene::new();
    fs::write(scene.at("p/op/src/lib.rs"), "2").unwrap();
    scene.is_told("written in place");
    fs::write(scene.at("p/op/src/.lib.rs.new"), "3").unwrap();
    fs::rename(scene.at("p/op/src/.lib.rs.new"), scene.at("p/op/src/lib.rs")).unwrap();
    scene.is_told("renamed over");
    fs::rename(scene.at("p/op/src/lib.rs"), scene.at("p/op/src/lib.rs~")).unwrap();
    fs::write(scene.at("p/op/src/lib.rs"), "4").unwrap();
    scene.is_told("moved away and written anew");
    fs::create_dir_all(scene.at("p/late/src")).unwrap();
    scene.is_told("a new folder");
    fs::write(scene.at("p/late/src/lib.rs"), "5").unwrap();
    scene.is_told("a file in a folder that came later");
    fs::remove_dir_all(scene.at("p/late")).unwrap();
    scene.is_told("a folder that goes");
}

#[test]
fn what_no_look_reads_is_not_told() {
    let mut scene = Scene::new();
    fs::create_dir_all(scene.at("p/op/target/debug")).unwrap();
    fs::write(scene.at("p/op/target/debug/x"), "1").unwrap();
    fs::create_dir_all(scene.at(".git")).unwrap();
    fs::write(scene.at(".git/index"), "1").unwrap();
    fs::write(scene.at("p/op/src/lib.rs~"), "1").unwrap();
    fs::write(scene.tree.path().join("beside"), "1").unwrap();
    fs::read(scene.at("p/op/src/lib.rs")).unwrap();
    // The folder above them did change.
    scene.follow();
    fs::write(scene.at("p/op/target/debug/y"), "1").unwrap();
    fs::write(scene.tree.path().join("beside"), "2").unwrap();
    fs::read(scene.at("p/op/src/lib.rs")).unwrap();
    scene.is_not_told("a build, another file beside the root, a reader");
}

#[test]
fn links_are_followed_to_what_they_lead_to() {
    let mut scene = Scene::new();
    let outside = scene.tree.path().canonicalize().unwrap().join("outside");
    fs::create_dir_all(outside.join("op/src")).unwrap();
    fs::write(outside.join("one.rs"), "1").unwrap();
    symlink(outside.join("op"), scene.at("p/linked")).unwrap();
    symlink(outside.join("one.rs"), scene.at("p/op/src/one.rs")).unwrap();
    scene.is_told("links that come");
    fs::write(outside.join("op/src/lib.rs"), "1").unwrap();
    scene.is_told("a file in a folder that is a link");
    fs::write(outside.join("one.rs"), "2").unwrap();
    scene.is_told("a file that is a link");
    fs::write(outside.join("two.rs"), "1").unwrap();
    scene.is_not_told("another file beside it");
}

#[test]
fn a_root_that_is_replaced_is_watched_again() {
    let mut scene = Scene::new();
    let root = scene.watched.roots[0].clone();
    fs::rename(&root, root.with_extension("old")).unwrap();
    scene.is_told("the root goes");
    fs::create_dir_all(root.join("p/op/src")).unwrap();
    scene.is_told("another root comes");
    fs::write(scene.at("p/op/src/lib.rs"), "9").unwrap();
    scene.is_told("a file in it");
    fs::rename(scene.at("p/op"), scene.at("p/other")).unwrap();
    scene.is_told("a folder is renamed");
    fs::write(scene.at("p/other/src/lib.rs"), "10").unwrap();
    scene.is_told("a file below its new name");
}

#[test]
fn without_the_system_it_looks_again_by_itself() {
    let (nudges, told) = channel();
    let watch = Watch { told, system: None };
    let began = Instant::now();
    assert!(watch.wait(Instant::now() + 9 * SOON));
    assert!(began.elapsed() >= POLL);
    nudges.send(Nudge::Stop).unwrap();
    assert!(!watch.wait(Instant::now() + 9 * SOON));
}

#[test]
fn events_without_end_do_not_hold_up_a_look() {
    let (nudges, told) = channel();
    let watch = Watch { told, system: None };
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = std::sync::Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            nudges.send(Nudge::Changed).unwrap();
            std::thread::sleep(QUIET / 5);
        }
    });
    let began = Instant::now();
    assert!(watch.wait(Instant::now() + 9 * SOON));
    assert!(began.elapsed() < SOON);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
}
