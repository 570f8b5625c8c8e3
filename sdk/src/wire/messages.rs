//! One type per frame: what a request carries and what its reply carries.

use super::{Reader, Texts, Wire, WireError, Writer};

/// Structs whose byte form is their fields in order.
macro_rules! messages {
    ($frame:lifetime: $(
        $(#[$doc:meta])*
        $name:ident $(<$lifetime:lifetime>)? { $( $(#[$field_doc:meta])* $field:ident: $type:ty, )* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name $(<$lifetime>)? { $( $(#[$field_doc])* pub $field: $type, )* }

        impl<$frame> Wire<$frame> for $name $(<$lifetime>)? {
            fn put_into(&self, out: &mut Writer) {
                $( out.put(&self.$field); )*
            }
            fn take(from: &mut Reader<$frame>) -> Result<Self, WireError> {
                Ok(Self { $( $field: Wire::take(from)?, )* })
            }
        }
    )*};
}

messages! { 'a:
    /// What a host hands a plugin to run: the parameters by name, `app_dir` already taken out.
    CallFrame<'a> {
        /// Name and text of each given parameter.
        params: Vec<(&'a str, &'a str)>,
    }

    /// `READ`. Reply: [`Opened`].
    ReadRequest<'a> {
        /// Which collection.
        collection: &'a str,
    }

    /// A collection at one moment.
    Opened<'a> {
        /// Names the snapshot in later requests of this call.
        snapshot: u32,
        /// What the file holds, as [`CollectionState`](crate::CollectionState) numbers it.
        state: u8,
        /// How many records.
        len: u32,
        /// Why the file is unreadable; empty unless it is corrupt.
        reason: &'a str,
    }

    /// `FIND`. Reply: [`Found`].
    FindRequest<'a> {
        /// In which snapshot.
        snapshot: u32,
        /// A top-level field.
        field: &'a str,
        /// The string it must equal.
        value: &'a str,
        /// At most so many, first in file order.
        limit: u32,
    }

    /// Records with their positions, in file order.
    Found<'a> {
        /// Position of each in its collection.
        positions: Vec<u32>,
        /// Text of each.
        texts: Texts<'a>,
    }

    /// `SCAN`. Reply: [`Texts`], at least one record unless `offset` is at the end.
    ScanRequest {
        /// Which snapshot.
        snapshot: u32,
        /// Position of the first record wanted.
        offset: u32,
        /// Stop after about so many bytes.
        bytes: u32,
    }

    /// `VALUE`. Reply: the JSON text.
    ValueRequest {
        /// Which snapshot.
        snapshot: u32,
    }

    /// `BEGIN`. Reply: [`Begun`].
    BeginRequest<'a> {
        /// The collections to lock.
        collections: Vec<&'a str>,
    }

    /// A transaction and what it starts from.
    Begun<'a> {
        /// Names the transaction in later requests of this call.
        transaction: u32,
        /// One per collection, in the order asked for. Readable by FIND, SCAN and VALUE until the end
        /// of the transaction.
        collections: Vec<Opened<'a>>,
    }

    /// `COMMIT`. Reply: nothing.
    CommitRequest<'a> {
        /// Which transaction.
        transaction: u32,
        /// What changes; a collection that is not named keeps its bytes.
        changes: Vec<Change<'a>>,
        /// Logs that are deleted once the changes are stored, before any other writer gets its turn.
        then_remove: Vec<u32>,
    }

    /// What a transaction does to one collection. Positions are those of the snapshot it began with.
    Change<'a> {
        /// Which collection.
        collection: &'a str,
        /// Make it an empty list first, whatever it was.
        fresh: bool,
        /// New text of records.
        replaced: Vec<(u32, &'a str)>,
        /// Records that go.
        removed: Vec<u32>,
        /// Records added at the end.
        pushed: Vec<&'a str>,
    }

    /// `ROLLBACK`. Reply: nothing.
    RollbackRequest {
        /// Which transaction.
        transaction: u32,
    }

    /// `LOG_OPEN`. Reply: `Option<u32>`, the log's number in later requests; none for an id that
    /// cannot name a log.
    LogOpenRequest<'a> {
        /// Directory of the logs, below the app directory.
        directory: &'a str,
        /// Which log.
        id: &'a str,
    }

    /// `LOG_READ`: reply [`Texts`]. `LOG_REMOVE`: reply whether there was a file. `LOG_EXISTS`: reply
    /// whether there is one.
    LogRequest {
        /// Which log.
        log: u32,
    }

    /// `LOG_APPEND`. Reply: nothing.
    LogAppendRequest<'a> {
        /// Which log.
        log: u32,
        /// One JSON value.
        entry: &'a str,
    }

    /// `LOG_CREATE`. Reply: whether it was written; false when the file existed.
    LogCreateRequest<'a> {
        /// Which log.
        log: u32,
        /// JSON values, one per line.
        entries: Vec<&'a str>,
    }

    /// `LOG_CREATE_DIR`. Reply: nothing.
    LogCreateDirRequest<'a> {
        /// Directory of the logs, below the app directory.
        directory: &'a str,
    }

    /// `FOLDER_OPEN`. Reply: `u32`, the folder's number in later requests.
    FolderOpenRequest<'a> {
        /// The directory that confines it, as the caller names it.
        root: &'a str,
        /// Plain names below the root.
        path: &'a str,
        /// Name of the lock file in the folder.
        lock: &'a str,
    }

    /// `FOLDER_UNLOCK`: reply nothing. `FOLDER_EXISTS`: reply whether the directory is there.
    /// `FOLDER_PATH`: reply its absolute path.
    FolderRequest {
        /// Which folder.
        folder: u32,
    }

    /// `FOLDER_LOCK`. Reply: whether the lock was got in time.
    FolderLockRequest {
        /// Which folder.
        folder: u32,
        /// Longest wait in milliseconds.
        wait_ms: u64,
    }

    /// `FOLDER_READ`, `FOLDER_READ_LOSSY`: reply `Option<text>`. `FOLDER_LIST`: reply [`Entry`] per name.
    /// `FOLDER_REMOVE`: reply whether there was a file.
    FolderNameRequest<'a> {
        /// Which folder.
        folder: u32,
        /// Path below the folder; for `FOLDER_LIST` empty is the folder itself.
        name: &'a str,
    }

    /// One name in a directory.
    Entry<'a> {
        /// The name.
        name: &'a str,
        /// Whether it is a directory.
        is_directory: bool,
    }

    /// `FOLDER_REPLACE`, `FOLDER_APPEND`: reply nothing. `FOLDER_CREATE`: reply whether it was written.
    FolderWriteRequest<'a> {
        /// Which folder.
        folder: u32,
        /// Path below the folder.
        name: &'a str,
        /// The whole text.
        text: &'a str,
    }

    /// `FOLDER_RENAME`. Reply: whether it was renamed; false when the new name is taken.
    FolderRenameRequest<'a> {
        /// Which folder.
        folder: u32,
        /// Path below the folder.
        from: &'a str,
        /// Path below the folder, in the same directory of it.
        to: &'a str,
    }

    /// `FOLDER_CREATE_DIR`. Reply: whether this call created it.
    FolderCreateDirRequest<'a> {
        /// Which folder.
        folder: u32,
        /// Empty directories in it.
        directories: Vec<&'a str>,
        /// Path and text of its files.
        files: Vec<(&'a str, &'a str)>,
    }

    /// `FOLDER_READ_ALL`. Reply: [`ReadFile`] per name, in order.
    FolderNamesRequest<'a> {
        /// Which folder.
        folder: u32,
        /// Paths below the folder.
        names: Vec<&'a str>,
    }

    /// One of many files.
    ReadFile<'a> {
        /// Its text; none if there is no such file, or it cannot be read.
        text: Option<&'a str>,
        /// Why it cannot be read; empty if it can, or is not there.
        refusal: &'a str,
    }

    /// `HTTP`. Reply: [`HttpAnswer`].
    HttpAsk<'a> {
        /// `GET`, `POST`, …
        method: &'a str,
        /// The whole address.
        url: &'a str,
        /// Name and value of each header.
        headers: Vec<(&'a str, &'a str)>,
        /// Empty for none.
        body: &'a [u8],
        /// Longest wait for the whole answer in milliseconds.
        limit_ms: u64,
    }

    /// What a server answered.
    HttpAnswer<'a> {
        /// The status.
        status: u32,
        /// Name, in lower case, and value of each header that is text.
        headers: Vec<(&'a str, &'a str)>,
        /// The body.
        body: &'a [u8],
    }

    /// `RANDOM`. Reply: the bytes.
    RandomRequest {
        /// How many, at most 1024.
        count: u32,
    }

    /// `TRACE`. Reply: nothing.
    TraceRequest<'a> {
        /// 1 error, 2 warn, 3 info, 4 debug, 5 trace.
        level: u8,
        /// One line.
        message: &'a str,
    }

    /// `CALL`. Reply: a reply frame.
    CallRequest<'a> {
        /// `project.op` or `workspace.project.op`.
        op: &'a str,
        /// Name and text of each parameter.
        params: Vec<(&'a str, &'a str)>,
    }
}
