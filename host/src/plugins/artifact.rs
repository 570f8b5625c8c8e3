//! [`Artifact`]: a built file that was checked and copied to where nobody changes it.
//!
//! A library that is cut short ends the process with SIGBUS when it is opened, and one that is overwritten while it
//! is open does the same later. So a file is read whole, checked as an ELF image, and written under the hash of its
//! content into a folder of the host's own; that copy is opened, never the file itself.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};

use super::pack::{Packed, sha256};
use super::refusal::Refusal;

/// The folder of checked copies. Several hosts may use one at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// A checked copy of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Artifact {
    /// The copy, named by its hash.
    pub(crate) path: PathBuf,
    /// SHA-256, lower-case hex.
    pub(crate) hash: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// When the file it is a copy of was built.
    pub(crate) built_at: SystemTime,
}

/// Copies that no host has used for this long are removed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Where there are more bytes than this, the oldest are removed after a shorter time: a host that runs notes each day
/// what it uses.
const MUCH: u64 = 2 << 30;
const KEPT_OF_MUCH: Duration = Duration::from_secs(3 * 24 * 3600);

impl Cache {
    /// Opens the folder, made if need be, and makes sure that nobody else can write into it.
    pub(crate) fn open(folder: &Path) -> Result<Self, Box<Refusal>> {
        let refused = |what: String| {
            Refusal::new(what, "make the cache folder writable for you alone, or set UDF_HOST_CACHE to one that is")
                .file(folder)
                .passing()
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| refused(format!("the cache folder cannot be made: {error}")))?;
        let facts = fs::metadata(folder)
            .map_err(|error| refused(format!("the cache folder is unusable: {error}")))?;
        if facts.uid() != rustix::process::geteuid().as_raw() {
            return Err(refused("the cache folder belongs to another user".to_owned()));
        }
        if facts.mode() & 0o077 != 0 {
            fs::set_permissions(folder, Permissions::from_mode(0o700))
                .map_err(|error| refused(format!("the cache folder is open to others: {error}")))?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Checks the file and takes a copy of it.
    pub(crate) fn take(&self, file: &Path) -> Result<Artifact, Box<Refusal>> {
        self.take_sealed(file, None)
    }

    /// [`Cache::take`] of a file that must be the one that was packed.
    pub(crate) fn take_sealed(
        &self,
        file: &Path,
        packed: Option<&Packed>,
    ) -> Result<Artifact, Box<Refusal>> {
        let (bytes, modified) = read(file)?;
        let hash = sha256(&bytes);
        if let Some(packed) = packed.filter(|packed| packed.sha256 != hash) {
            return Err(Refusal::new(
                "its artifact is not the file that was packed",
                "copy the pack again, or pack it again",
            )
            .compared(format!("SHA-256 {}", packed.sha256), format!("SHA-256 {hash}"))
            .file(file));
        }
        check_elf(&bytes).map_err(|fault| fault.file(file))?;
        let built_at = packed.map_or(modified, |packed| packed.built_at);
        let path = self.place(&hash);
        if !self.holds(&path, &hash, bytes.len() as u64) {
            self.write(&path, &bytes).map_err(|error| {
                Refusal::new(
                    format!("its artifact cannot be copied to the cache: {error}"),
                    "free some disk space",
                )
                .file(&path)
                .passing()
            })?;
        }
        Ok(Artifact { path, hash, bytes: bytes.len() as u64, built_at })
    }

    /// The copy of this hash, if there is one and it is whole.
    pub(crate) fn get(&self, hash: &str, built_at: SystemTime) -> Option<Artifact> {
        let path = self.place(hash);
        let size = fs::metadata(&path).ok()?.len();
        self.holds(&path, hash, size).then(|| Artifact {
            path,
            hash: hash.to_owned(),
            bytes: size,
            built_at,
        })
    }

    /// Where facts about the copy of this hash are kept.
    pub(crate) fn beside(&self, hash: &str) -> PathBuf {
        self.folder.join(format!("{hash}.json"))
    }

    fn place(&self, hash: &str) -> PathBuf {
        self.folder.join(format!("{hash}.so"))
    }

    /// Whether the file is there and is what its name says. A copy from another host that was stopped half way, or
    /// from a disk that lost it, is not.
    fn holds(&self, path: &Path, wanted: &str, size: u64) -> bool {
        let whole = fs::symlink_metadata(path)
            .is_ok_and(|facts| facts.is_file() && facts.len() == size)
            && fs::read(path).is_ok_and(|bytes| sha256(&bytes) == wanted);
        if whole {
            Self::note_use(path);
        }
        whole
    }

    /// Notes that this copy is in use, so that no host removes it.
    pub(crate) fn note_use(path: &Path) {
        let now = fs::FileTimes::new().set_modified(SystemTime::now());
        if let Err(error) = File::open(path).and_then(|file| file.set_times(now)) {
            // It serves all the same.
            tracing::debug!(file = %path.display(), %error, "a copy is in use and looks unused");
        }
    }

    /// Writes under a name of its own first: whoever finds the final name finds a whole file.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut temp = tempfile::Builder::new().prefix(".copy-").tempfile_in(&self.folder)?;
        temp.write_all(bytes)?;
        temp.as_file().set_permissions(Permissions::from_mode(0o500))?;
        temp.as_file().sync_all()?;
        temp.persist(path)?;
        File::open(&self.folder)?.sync_all()
    }

    /// Removes copies that nobody has used for long, sooner when there is much of them, and what a killed host left half
    /// written. A copy that is open somewhere lives on there.
    pub(crate) fn sweep(&self) {
        self.sweep_beyond(MUCH);
    }

    fn sweep_beyond(&self, much: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let now = SystemTime::now();
        let mut files: Vec<(Duration, u64, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let facts = entry.metadata().ok()?;
                let unused = now.duration_since(facts.modified().ok()?).unwrap_or_default();
                Some((unused, facts.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut kept = 0;
        for (unused, bytes, path) in files {
            kept += bytes;
            let limit = if kept > much { KEPT_OF_MUCH } else { KEPT };
            if unused > limit
                && let Err(error) = fs::remove_file(&path)
            {
                tracing::debug!(file = %path.display(), %error, "an old copy stays in the cache");
            }
        }
    }
}

fn read(file: &Path) -> Result<(Vec<u8>, SystemTime), Box<Refusal>> {
    let rebuild = "build or pack it again";
    const WANTED: &str = "a regular file that can be read";
    let unreadable = |error: io::Error| {
        let (what, found) = match error.kind() {
            io::ErrorKind::NotFound => (
                "its artifact is not there (a missing file or a dangling link)".to_owned(),
                "nothing".to_owned(),
            ),
            _ => (format!("its artifact cannot be read: {error}"), error.to_string()),
        };
        Refusal::new(what, rebuild).compared(WANTED, found).file(file)
    };
    let facts = fs::metadata(file).map_err(unreadable)?;
    if !facts.is_file() {
        // Not opened: opening a pipe would wait for its writer.
        let found = if facts.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
        return Err(Refusal::new("its artifact is not a regular file", rebuild)
            .compared(WANTED, found)
            .file(file));
    }
    let bytes = fs::read(file).map_err(unreadable)?;
    Ok((bytes, facts.modified().unwrap_or(SystemTime::UNIX_EPOCH)))
}

/// The machine this host runs on, as ELF numbers and names it.
const MACHINE: (u16, &str) = if cfg!(target_arch = "x86_64") {
    (elf::EM_X86_64.0, "x86_64")
} else if cfg!(target_arch = "aarch64") {
    (elf::EM_AARCH64.0, "aarch64")
} else {
    (elf::EM_NONE.0, "this machine")
};

/// Checks that the bytes are a whole shared library for this machine.
fn check_elf(bytes: &[u8]) -> Result<(), Box<Refusal>> {
    let rebuild = "build it again; if it was copied here, copy it again";
    let not_elf = |found: &str| {
        Refusal::new("its artifact is not a shared library", rebuild)
            .compared("an ELF shared library", found)
    };
    if bytes.is_empty() {
        return Err(not_elf("an empty file"));
    }
    if !bytes.starts_with(&elf::ELFMAG) {
        let text = std::str::from_utf8(&bytes[..bytes.len().min(64)]).is_ok();
        return Err(not_elf(if text { "text" } else { "something else" }));
    }
    let cut = |what: &str| {
        Refusal::new("its artifact is cut short", rebuild)
            .compared(format!("{what} inside the file"), format!("a file of {} bytes", bytes.len()))
    };
    if bytes.get(4) == Some(&elf::ELFCLASS32.0) {
        return Err(Refusal::new(
            "its artifact is for another machine",
            "build it on this machine",
        )
        .compared(format!("64-bit {}", MACHINE.1), "32-bit"));
    }
    let header = elf::FileHeader64::<object::Endianness>::parse(bytes)
        .map_err(|_| cut("the file header"))?;
    let endian = header.endian().map_err(|_| not_elf("an ELF file of unknown byte order"))?;
    if endian != object::Endianness::default() {
        return Err(Refusal::new(
            "its artifact is for another machine",
            "build it on this machine",
        )
        .compared(MACHINE.1, "a machine of the other byte order"));
    }
    let machine = header.e_machine(endian);
    if machine.0 != MACHINE.0 {
        return Err(Refusal::new(
            "its artifact is for another machine",
            "build it on this machine",
        )
        .compared(MACHINE.1, machine_name(machine.0)));
    }
    if header.e_type(endian) != elf::ET_DYN {
        return Err(not_elf("an ELF file of another type (an object or a program)"));
    }
    let size = bytes.len() as u64;
    let inside =
        |offset: u64, length: u64| offset.checked_add(length).is_some_and(|end| end <= size);
    let segments =
        header.program_headers(endian, bytes).map_err(|_| cut("the table of segments"))?;
    for segment in segments {
        if segment.p_type(endian) == elf::PT_LOAD
            && !inside(segment.p_offset(endian), segment.p_filesz(endian))
        {
            return Err(cut("every segment"));
        }
    }
    // The table of sections is the last thing in the file: if it is there, nothing before it is missing.
    let sections = u64::from(header.e_shnum(endian)) * u64::from(header.e_shentsize(endian));
    if !inside(header.e_shoff(endian), sections) {
        return Err(cut("the table of sections"));
    }
    Ok(())
}

fn machine_name(machine: u16) -> String {
    match elf::Machine(machine) {
        elf::EM_X86_64 => "x86_64".to_owned(),
        elf::EM_AARCH64 => "aarch64".to_owned(),
        elf::EM_ARM => "arm".to_owned(),
        elf::EM_RISCV => "riscv".to_owned(),
        elf::Machine(other) => format!("ELF machine {other}"),
    }
}

#[cfg(test)]
mod tests;
