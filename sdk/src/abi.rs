//! Every type that crosses between a host and a plugin, and nothing else.
//!
//! A plugin is one [`Plugin`] struct; what it may ask for is one [`HostApi`] struct. Both carry plain
//! bytes whose layout is in [`crate::wire`], so that the same calls can go over a pipe unchanged.
//!
//! How this file may change: a [`Method`] takes the next free number. That is how the boundary grows,
//! and older plugins keep loading. Any change of a struct, a field after the last one included, makes
//! `abi_stable` refuse plugins built before it: it raises [`INTERFACE_VERSION`].
//! `sdk/tests/fixtures/first_interface/` keeps the first version of this file; a test builds a plugin
//! from it and loads it against the present one.

use abi_stable::StableAbi;
use abi_stable::declare_root_module_statics;
use abi_stable::library::RootModule;
use abi_stable::package_version_strings;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::{RResult, RSlice, RVec};

/// Which boundary this is. A host serves plugins of its own interface version and refuses others.
pub const INTERFACE_VERSION: u32 = 1;

/// What a plugin's library exports.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRef)))]
#[sabi(missing_field(panic))]
pub struct Plugin {
    /// [`INTERFACE_VERSION`] of the sdk the plugin was built with. Checked before anything is called.
    pub interface: u32,
    /// The descriptor as JSON text in UTF-8. Never unwinds; an empty answer means it panicked.
    pub descriptor: extern "C" fn() -> RVec<u8>,
    /// Runs the operation: a call frame in, a reply frame or an error frame out. Never unwinds.
    #[sabi(last_prefix_field)]
    pub call: extern "C" fn(HostApiRef, HostHandle, RSlice<'_, u8>) -> RResult<RVec<u8>, RVec<u8>>,
}

/// What a plugin may ask of its host during a call.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = HostApiRef)))]
#[sabi(missing_field(panic))]
pub struct HostApi {
    /// One request: the number of a [`Method`] and its frame in, a reply frame or an error frame out.
    /// A number the host does not know is an error of kind `Unsupported`. Never unwinds.
    pub call: extern "C" fn(HostHandle, u32, RSlice<'_, u8>) -> RResult<RVec<u8>, RVec<u8>>,
    /// Whether the caller has gone away or the deadline has passed. Cheap enough for inner loops.
    #[sabi(last_prefix_field)]
    pub cancelled: extern "C" fn(HostHandle) -> bool,
}

/// Names one running call to the host. Valid until that call returns, and only in this process.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct HostHandle(usize);

impl HostHandle {
    /// Wraps what only the host can unwrap.
    pub const fn new(raw: usize) -> Self {
        Self(raw)
    }

    /// The wrapped value.
    pub const fn raw(self) -> usize {
        self.0
    }
}

impl RootModule for PluginRef {
    declare_root_module_statics! {PluginRef}
    const BASE_NAME: &'static str = "plugin";
    const NAME: &'static str = "plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}

/// Number of a host request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Method(pub u32);

/// The requests and replies are in [`crate::wire`], one type each.
impl Method {
    /// Opens a snapshot of a collection.
    pub const READ: Self = Self(1);
    /// Records of a snapshot whose field equals a string, by the store's index.
    pub const FIND: Self = Self(2);
    /// The next records of a snapshot, in file order.
    pub const SCAN: Self = Self(3);
    /// The whole value of a collection, list or not.
    pub const VALUE: Self = Self(4);
    /// Opens a transaction on declared collections.
    pub const BEGIN: Self = Self(5);
    /// Makes all staged changes of a transaction durable.
    pub const COMMIT: Self = Self(6);
    /// Gives a transaction up.
    pub const ROLLBACK: Self = Self(7);

    /// Opens a log by directory and id.
    pub const LOG_OPEN: Self = Self(16);
    /// Every readable entry of a log.
    pub const LOG_READ: Self = Self(17);
    /// Adds one entry.
    pub const LOG_APPEND: Self = Self(18);
    /// Deletes the log's file.
    pub const LOG_REMOVE: Self = Self(19);
    /// Writes a whole log that must not exist yet.
    pub const LOG_CREATE: Self = Self(20);
    /// Whether the log's file exists.
    pub const LOG_EXISTS: Self = Self(21);
    /// Creates the directory of a kind of logs.
    pub const LOG_CREATE_DIR: Self = Self(22);

    /// Opens a directory as a folder.
    pub const FOLDER_OPEN: Self = Self(32);
    /// Takes a folder's lock.
    pub const FOLDER_LOCK: Self = Self(33);
    /// Gives a folder's lock back.
    pub const FOLDER_UNLOCK: Self = Self(34);
    /// One whole file.
    pub const FOLDER_READ: Self = Self(35);
    /// Names below a directory.
    pub const FOLDER_LIST: Self = Self(36);
    /// Replaces a file whole; needs the lock.
    pub const FOLDER_REPLACE: Self = Self(37);
    /// Writes a file that must not exist; needs the lock.
    pub const FOLDER_CREATE: Self = Self(38);
    /// Removes a file; needs the lock.
    pub const FOLDER_REMOVE: Self = Self(39);
    /// Creates a directory with its files in one step.
    pub const FOLDER_CREATE_DIR: Self = Self(40);
    /// Whether the directory exists.
    pub const FOLDER_EXISTS: Self = Self(41);
    /// Adds whole lines to a file; needs the lock.
    pub const FOLDER_APPEND: Self = Self(42);
    /// Gives a file another name; needs the lock.
    pub const FOLDER_RENAME: Self = Self(43);
    /// Many whole files.
    pub const FOLDER_READ_ALL: Self = Self(44);
    /// Where the folder is, for programs that an operation starts on it.
    pub const FOLDER_PATH: Self = Self(45);
    /// One whole file as far as it is text.
    pub const FOLDER_READ_LOSSY: Self = Self(46);

    /// Time of the call.
    pub const NOW: Self = Self(48);
    /// Random bytes of the operating system.
    pub const RANDOM: Self = Self(49);
    /// One line for the host's log.
    pub const TRACE: Self = Self(50);
    /// Runs another operation.
    pub const CALL: Self = Self(51);
    /// How much time is left.
    pub const DEADLINE: Self = Self(52);
    /// One request over HTTP.
    pub const HTTP: Self = Self(53);
    /// A setting of the project.
    pub const SETTING: Self = Self(54);
}
