//! A disk in memory that can stop, fail and lose what was not synced.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Backend, Entry, Held, Stamp, WriteMode};

/// What is left after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process died; the system kept all that it had been told.
    Process,
    /// Power failed: only synced content under synced names is left.
    Power,
    /// Power failed after names had been written out, but not the content that was not synced.
    NamesOnly,
}

/// Files in memory, for tests: what was synced is known apart from what was only written, and the
/// disk can be made to stop or fail at any step. Knows no symbolic links. Clones share the disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryBackend {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    disk: Mutex<Disk>,
    unlocked: Condvar,
}

#[derive(Debug, Clone)]
enum Node {
    File { live: Vec<u8>, durable: Vec<u8>, version: u64 },
    Dir { live: BTreeMap<String, u64>, durable: BTreeMap<String, u64> },
}

#[derive(Debug)]
struct Disk {
    nodes: HashMap<u64, Node>,
    clock: u64,
    locks: HashSet<PathBuf>,
    steps: usize,
    stop_after: Option<usize>,
    fail_at: Option<usize>,
}

const ROOT: u64 = 0;

impl Default for Disk {
    fn default() -> Self {
        let root = Node::Dir { live: BTreeMap::new(), durable: BTreeMap::new() };
        Self {
            nodes: HashMap::from([(ROOT, root)]),
            clock: 0,
            locks: HashSet::new(),
            steps: 0,
            stop_after: None,
            fail_at: None,
        }
    }
}

impl MemoryBackend {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `n` more changing steps happen; from then on each one fails, the first of them half
    /// done.
    pub fn stop_after(&self, n: usize) {
        let mut disk = self.disk();
        disk.stop_after = Some(disk.steps + n);
    }

    /// Makes the step after `n` more ones fail as on a full disk; later ones work again.
    pub fn fail_after(&self, n: usize) {
        let mut disk = self.disk();
        disk.fail_at = Some(disk.steps + n + 1);
    }

    /// How many changing steps were asked for up to now.
    pub fn steps(&self) -> usize {
        self.disk().steps
    }

    /// The disk as the next start finds it. Locks are gone.
    #[must_use]
    pub fn crash(&self, how: Crash) -> Self {
        let disk = self.disk();
        let mut nodes = disk.nodes.clone();
        for node in nodes.values_mut() {
            match node {
                Node::File { live, durable, .. } => {
                    if how == Crash::Process {
                        durable.clone_from(live);
                    } else {
                        live.clone_from(durable);
                    }
                }
                Node::Dir { live, durable } => {
                    if how == Crash::Power {
                        live.clone_from(durable);
                    } else {
                        durable.clone_from(live);
                    }
                }
            }
        }
        let next = Disk { nodes, clock: disk.clock, ..Disk::default() };
        Self { shared: Arc::new(Shared { disk: Mutex::new(next), unlocked: Condvar::new() }) }
    }

    /// Puts a file there, as another program would have: synced, parents included.
    pub fn put(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            self.create_dirs(parent, true)?;
        }
        self.write(path, &[content], WriteMode::Truncate, true)?;
        self.sync_dir(path.parent().unwrap_or(Path::new("")))
    }

    /// The content of a file, if there is one.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        self.read(path).ok().flatten().map(|(content, _)| content)
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.shared.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parts(path: &Path) -> Vec<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    parts
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk {
    fn lookup(&self, path: &Path) -> Option<u64> {
        parts(path).iter().try_fold(ROOT, |at, name| match self.nodes.get(&at)? {
            Node::Dir { live, .. } => live.get(name).copied(),
            Node::File { .. } => None,
        })
    }

    /// The directory that holds `path`, and the last name.
    fn place(&self, path: &Path) -> io::Result<(u64, String)> {
        let mut parts = parts(path);
        let name = parts.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let dir: PathBuf = parts.iter().collect();
        Ok((self.lookup(&dir).ok_or_else(not_found)?, name))
    }

    fn names(&mut self, dir: u64) -> io::Result<&mut BTreeMap<String, u64>> {
        match self.nodes.get_mut(&dir) {
            Some(Node::Dir { live, .. }) => Ok(live),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn add(&mut self, node: Node) -> u64 {
        self.clock += 1;
        self.nodes.insert(self.clock, node);
        self.clock
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.place(from)?;
        let (to_dir, to_name) = self.place(to)?;
        if !self.names(from_dir)?.contains_key(&from_name) {
            return Err(not_found());
        }
        self.step()?;
        if let Some(node) = self.names(from_dir)?.remove(&from_name) {
            self.names(to_dir)?.insert(to_name, node);
        }
        Ok(())
    }

    /// One changing step. The step at which the disk stops or fails is an error.
    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        if self.stop_after.is_some_and(|n| self.steps > n) {
            return Err(io::Error::other("the disk has stopped"));
        }
        if self.fail_at == Some(self.steps) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Whether the failing step is the first one, which may be half done.
    fn half_done(&self) -> bool {
        self.fail_at == Some(self.steps) || self.stop_after.is_some_and(|n| self.steps == n + 1)
    }
}

impl Backend for MemoryBackend {
    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        let disk = self.disk();
        let Some(file) = disk.lookup(path) else { return Ok(None) };
        Ok(match &disk.nodes[&file] {
            Node::File { live, version, .. } => Some(Stamp {
                file: (0, file),
                size: live.len() as u64,
                modified_ns: i128::from(*version),
                changed_ns: i128::from(*version),
            }),
            Node::Dir { .. } => {
                Some(Stamp { file: (0, file), size: 0, modified_ns: 0, changed_ns: 0 })
            }
        })
    }

    fn is_fresh(&self, _: &Stamp) -> bool {
        false
    }

    fn read(&self, path: &Path) -> io::Result<Option<(Vec<u8>, Stamp)>> {
        let Some(stamp) = self.stamp(path)? else { return Ok(None) };
        match &self.disk().nodes[&stamp.file.1] {
            Node::File { live, .. } => Ok(Some((live.clone(), stamp))),
            Node::Dir { .. } => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn last_byte(&self, path: &Path) -> io::Result<Option<u8>> {
        Ok(self.read(path)?.and_then(|(content, _)| content.last().copied()))
    }

    fn write(&self, path: &Path, parts: &[&[u8]], mode: WriteMode, sync: bool) -> io::Result<()> {
        let mut disk = self.disk();
        let (dir, name) = disk.place(path)?;
        let there = disk.names(dir)?.get(&name).copied();
        if there.is_some() && mode == WriteMode::New {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let step = disk.step();
        if step.is_err() && !disk.half_done() {
            return step;
        }
        let mut content = parts.concat();
        if step.is_err() {
            content.truncate(content.len() / 2);
        }
        let file = match there {
            Some(file) => file,
            None => {
                let file =
                    disk.add(Node::File { live: Vec::new(), durable: Vec::new(), version: 0 });
                disk.names(dir)?.insert(name, file);
                file
            }
        };
        disk.clock += 1;
        let clock = disk.clock;
        match disk.nodes.get_mut(&file) {
            Some(Node::File { live, version, .. }) => {
                *version = clock;
                if mode == WriteMode::Append {
                    live.extend_from_slice(&content);
                } else {
                    *live = content;
                }
            }
            _ => return Err(io::ErrorKind::IsADirectory.into()),
        }
        step?;
        if sync {
            disk.step()?;
            if let Some(Node::File { live, durable, .. }) = disk.nodes.get_mut(&file) {
                durable.clone_from(live);
            }
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk().rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<bool> {
        let mut disk = self.disk();
        if disk.lookup(to).is_some() {
            return Ok(false);
        }
        disk.rename(from, to).map(|()| true)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        let id = disk.lookup(dir).ok_or_else(not_found)?;
        disk.step()?;
        match disk.nodes.get_mut(&id) {
            Some(Node::Dir { live, durable }) => {
                durable.clone_from(live);
                Ok(())
            }
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<bool> {
        let mut disk = self.disk();
        if disk.lookup(path).is_none() {
            return Ok(false);
        }
        disk.step()?;
        let (dir, name) = disk.place(path)?;
        Ok(disk.names(dir)?.remove(&name).is_some())
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.remove(dir).and_then(|there| if there { Ok(()) } else { Err(not_found()) })
    }

    fn create_dirs(&self, dir: &Path, sync: bool) -> io::Result<()> {
        let mut disk = self.disk();
        if let Some(id) = disk.lookup(dir) {
            return disk.names(id).map(|_| ());
        }
        disk.step()?;
        let mut at = ROOT;
        for name in parts(dir) {
            let next = disk.names(at)?.get(&name).copied();
            let id = match next {
                Some(id) => id,
                None => {
                    let empty = Node::Dir { live: BTreeMap::new(), durable: BTreeMap::new() };
                    let id = disk.add(empty);
                    disk.names(at)?.insert(name.clone(), id);
                    if sync && let Some(Node::Dir { durable, .. }) = disk.nodes.get_mut(&at) {
                        durable.insert(name, id);
                    }
                    id
                }
            };
            at = id;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Option<Vec<Entry>>> {
        let disk = self.disk();
        let Some(id) = disk.lookup(dir) else { return Ok(None) };
        let Node::Dir { live, .. } = &disk.nodes[&id] else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let is_dir = |id: &u64| matches!(disk.nodes[id], Node::Dir { .. });
        let entry = |(name, id): (&String, &u64)| Entry { name: name.clone(), is_dir: is_dir(id) };
        Ok(Some(live.iter().map(entry).collect()))
    }

    fn is_link(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(Path::new("/").join(parts(path).iter().collect::<PathBuf>()))
    }

    fn lock(&self, path: &Path, wait: Option<Duration>) -> io::Result<Option<Held>> {
        let real = self.real_path(path)?;
        let started = Instant::now();
        let mut disk = self.disk();
        let (dir, name) = disk.place(path)?;
        if !disk.names(dir)?.contains_key(&name) {
            let file = disk.add(Node::File { live: Vec::new(), durable: Vec::new(), version: 0 });
            disk.names(dir)?.insert(name, file);
        }
        while disk.locks.contains(&real) {
            let left = match wait {
                None => Duration::from_secs(3600),
                Some(limit) => limit.saturating_sub(started.elapsed()),
            };
            if left.is_zero() {
                return Ok(None);
            }
            disk = self
                .shared
                .unlocked
                .wait_timeout(disk, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        disk.locks.insert(real.clone());
        drop(disk);
        Ok(Some(Held::new(Release { backend: self.clone(), path: real })))
    }
}

struct Release {
    backend: MemoryBackend,
    path: PathBuf,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.backend.disk().locks.remove(&self.path);
        self.backend.shared.unlocked.notify_all();
    }
}
