//! Real files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use rustix::process::setpriority_process;

use super::{Backend, Entry, Held, Stamp, WriteMode};

/// The clock that stamps files moves once per timer tick, 10 ms at most; twice that is safe.
const TICK: Duration = Duration::from_millis(20);

/// The nicest a thread can be.
const LEAST_PRIORITY: i32 = 19;

/// Symbolic links passed on the way to one path, as the kernel counts them.
const MAX_LINKS: usize = 40;

/// The local file system.
#[derive(Debug, Default)]
pub struct FileBackend {
    closer: OnceLock<Option<SyncSender<File>>>,
}

impl FileBackend {
    /// Lets go of a file that has just lost its name. Freeing the blocks of a large one takes
    /// longer than all the rest of a commit but its syncs, and nobody needs to wait for it.
    fn close_later(&self, file: File) {
        let closer = self.closer.get_or_init(|| {
            let (sender, files) = std::sync::mpsc::sync_channel::<File>(4);
            let thread = std::thread::Builder::new().name("store-closer".to_owned());
            let close = move || {
                // On Linux this is the thread's own: whoever answers somebody goes before. It closes without that, too.
                let _as_it_is = setpriority_process(None, LEAST_PRIORITY);
                files.into_iter().for_each(drop);
            };
            thread.spawn(close).ok().map(|_| sender)
        });
        if let Some(closer) = closer {
            // When it lags behind, the file is closed here, with the error that carries it.
            drop(closer.try_send(file));
        }
    }
}

impl Stamp {
    fn of(meta: &fs::Metadata) -> Self {
        let ns = |secs: i64, nanos: i64| i128::from(secs) * 1_000_000_000 + i128::from(nanos);
        Self {
            file: (meta.dev(), meta.ino()),
            size: meta.size(),
            modified_ns: ns(meta.mtime(), meta.mtime_nsec()),
            changed_ns: ns(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Turns "there is none" into `None`.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens what is a file to its end: a pipe would hold whoever opens it until somebody takes the other side.
fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<(File, fs::Metadata)> {
    let at_once = OFlags::NONBLOCK.bits() as i32;
    let refused = |is: &str| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("this is {is}, not a file with records"),
        )
    };
    let file = options.custom_flags(at_once).open(path).map_err(|error| {
        let nobody_reads = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        if nobody_reads { refused("a pipe or a socket") } else { error }
    })?;
    let meta = file.metadata()?;
    if meta.is_file() {
        Ok((file, meta))
    } else if meta.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        Err(refused("a pipe or a device"))
    }
}

fn write_parts(file: &mut File, parts: &[&[u8]]) -> io::Result<()> {
    // The kernel takes at most 1024 slices at once.
    for chunk in parts.chunks(1024) {
        let mut slices: Vec<IoSlice<'_>> = chunk.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = slices.as_mut_slice();
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match file.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => IoSlice::advance_slices(&mut rest, n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Bytes of a file that is read: all of it is held in memory, and places in it fit 32 bits. What is larger was written by
/// mistake, such as a file of nothing but a far end.
const LARGEST: u64 = u32::MAX as u64;

impl Backend for FileBackend {
    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        Ok(found(fs::metadata(path))?.map(|meta| Stamp::of(&meta)))
    }

    fn is_fresh(&self, stamp: &Stamp) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // A stamp of the future never ages; such a file is read again on each look, which is
        // slow but right.
        stamp.modified_ns.max(stamp.changed_ns) + TICK.as_nanos() as i128 > now.as_nanos() as i128
    }

    fn read(&self, path: &Path) -> io::Result<Option<(Vec<u8>, Stamp)>> {
        let Some((mut file, meta)) = found(open_regular(OpenOptions::new().read(true), path))?
        else {
            return Ok(None);
        };
        let stamp = Stamp::of(&meta);
        let size = usize::try_from(stamp.size).ok().filter(|_| stamp.size <= LARGEST);
        let size = size.ok_or(io::ErrorKind::FileTooLarge)?;
        let mut content = Vec::new();
        // Memory that is not there is an error of this read, not the end of the process.
        content.try_reserve_exact(size).map_err(io::Error::other)?;
        file.read_to_end(&mut content)?;
        Ok(Some((content, stamp)))
    }

    fn last_byte(&self, path: &Path) -> io::Result<Option<u8>> {
        let Some((mut file, meta)) = found(open_regular(OpenOptions::new().read(true), path))?
        else {
            return Ok(None);
        };
        if meta.len() == 0 {
            return Ok(None);
        }
        file.seek(SeekFrom::End(-1))?;
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        Ok(Some(byte[0]))
    }

    fn write(&self, path: &Path, parts: &[&[u8]], mode: WriteMode, sync: bool) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = match mode {
            WriteMode::Truncate => {
                let no_follow = OFlags::NOFOLLOW.bits() as i32;
                options.write(true).create(true).truncate(true).custom_flags(no_follow);
                match options.open(path) {
                    Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                        fs::remove_file(path)?;
                        options.open(path)
                    }
                    other => other,
                }
            }
            WriteMode::New => options.write(true).create_new(true).open(path),
            WriteMode::Append => {
                open_regular(options.append(true).create(true), path).map(|(file, _)| file)
            }
        };
        let mut file = file?;
        write_parts(&mut file, parts)?;
        if mode == WriteMode::Truncate {
            // The clock that stamps files stands still for a tick, in which another program may write as
            // many bytes as we did. The exact time tells the two apart; a file system that cannot keep
            // it keeps its own.
            let _ = file.set_modified(SystemTime::now());
        }
        if sync {
            file.sync_data()?;
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        // Held open without access to its content, so that its end is not part of the rename.
        let path_only = (OFlags::PATH | OFlags::NOFOLLOW).bits() as i32;
        let replaced = OpenOptions::new().read(true).custom_flags(path_only).open(to).ok();
        fs::rename(from, to)?;
        if let Some(replaced) = replaced {
            self.close_later(replaced);
        }
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<bool> {
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // File systems without the flag: a second name is exclusive too. For a directory a
            // plain rename is, as a directory that is not empty is never replaced.
            Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(from)?.is_dir() => {
                match fs::rename(from, to) {
                    Ok(()) => Ok(true),
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                        ) =>
                    {
                        Ok(false)
                    }
                    Err(error) => Err(error),
                }
            }
            Err(Errno::INVAL | Errno::NOSYS) => match fs::hard_link(from, to) {
                Ok(()) => fs::remove_file(from).map(|()| true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            },
            Err(error) => Err(error.into()),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // The empty path is the parent of a relative name.
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        File::open(dir)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<bool> {
        Ok(found(fs::remove_file(path))?.is_some())
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir_all(dir)
    }

    fn create_dirs(&self, dir: &Path, sync: bool) -> io::Result<()> {
        if dir.as_os_str().is_empty() || dir.is_dir() {
            return Ok(());
        }
        let parent = dir.parent().unwrap_or(Path::new(""));
        self.create_dirs(parent, sync)?;
        match fs::create_dir(dir) {
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            other => other?,
        }
        if sync {
            self.sync_dir(parent)?;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Option<Vec<Entry>>> {
        let Some(entries) = found(fs::read_dir(dir))? else { return Ok(None) };
        let mut list = Vec::new();
        for entry in entries {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string() {
                list.push(Entry { name, is_dir: entry.file_type()?.is_dir() });
            }
        }
        list.sort();
        Ok(Some(list))
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        Ok(found(fs::symlink_metadata(path))?.is_some_and(|meta| meta.is_symlink()))
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        let mut real =
            if path.is_absolute() { PathBuf::from("/") } else { std::env::current_dir()? };
        // Components still to come, the next one last.
        let mut rest: Vec<PathBuf> = components(path);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part.as_os_str() == ".." {
                real.pop();
                continue;
            }
            if part.as_os_str() == "/" {
                real = PathBuf::from("/");
                continue;
            }
            let here = real.join(&part);
            match fs::read_link(&here) {
                Ok(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    rest.extend(components(&target));
                }
                // No link, or nothing there.
                Err(_) => real = here,
            }
        }
        Ok(real)
    }

    fn lock(&self, path: &Path, wait: Option<Duration>) -> io::Result<Option<Held>> {
        let started = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            // A new file description each time, so that threads exclude each other as well.
            // std opens close-on-exec.
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?;
            loop {
                let how = match wait {
                    None => FlockOperation::LockExclusive,
                    Some(_) => FlockOperation::NonBlockingLockExclusive,
                };
                match (flock(&file, how), wait) {
                    (Ok(()), _) => break,
                    (Err(Errno::INTR), _) => {}
                    (Err(Errno::WOULDBLOCK), Some(limit)) => {
                        let left = limit.saturating_sub(started.elapsed());
                        if left.is_zero() {
                            return Ok(None);
                        }
                        std::thread::sleep(pause.min(left));
                        pause = (pause * 2).min(Duration::from_millis(10));
                    }
                    (Err(error), _) => return Err(error.into()),
                }
            }
            // Somebody may have removed the file while we waited: then others lock another one.
            let ours = Stamp::of(&file.metadata()?).file;
            if self.stamp(path)?.is_some_and(|stamp| stamp.file == ours) {
                return Ok(Some(Held::new(Locked(file))));
            }
        }
    }
}

/// An open sentinel that is locked.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing alone would not do while a child process that is just being started still has a
        // copy of the descriptor. Unlocking an open file cannot fail.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// The parts of a path that mean something, last one first.
fn components(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| PathBuf::from(part.as_os_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_memory_holds_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        File::create(&path).unwrap().set_len(1 << 43).unwrap();
        let error = FileBackend::default().read(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn content_is_stamped_with_the_exact_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let backend = FileBackend::default();
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i128;
        for _ in 0..50 {
            let before = now();
            backend.write(&path, &[b"x"], WriteMode::Truncate, false).unwrap();
            let stamp = backend.stamp(&path).unwrap().unwrap();
            assert!((before..=now()).contains(&stamp.modified_ns), "{before} {stamp:?}");
        }
    }
}
