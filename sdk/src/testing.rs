//! A host inside a unit test (feature `testing`): the function runs against a real store in a
//! directory of its own, without a library being loaded.
//!
//! ```ignore
//! let host = TestHost::new();
//! host.seed("cards", r#"[{"id": "card_1", "status": "pending"}]"#);
//! // As a host calls it, parameters as texts:
//! assert_eq!(host.call(UDF, &[("id", "nope")]), Ok(Reply::not_found()));
//! // As a plain function:
//! assert!(get_card(&host.context(UDF), "card_1").is_ok());
//! ```

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The store, for tests of what is left after a crash.
pub use core_store as store;
use core_store::{Durability, Store, StoreOptions};
use tempfile::TempDir;

use crate::abi::Method;
use crate::context::Context;
use crate::error::{ErrorKind, UdfError};
use crate::host::{Descriptor, HostService, ServiceHandle, StoreSession, invoke};
use crate::http::{HttpReply, HttpRequest};
use crate::params::Params;
use crate::reply::Reply;
use crate::time::Timestamp;
use crate::udf::Udf;
use crate::wire::{CallRequest, HttpAnswer, HttpAsk, TraceRequest, Wire};

/// A host with a state directory of its own, which goes away with it. Methods panic where a test
/// cannot go on: this is for tests only.
pub struct TestHost {
    directory: TempDir,
    store: Store,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    now: Mutex<Option<Timestamp>>,
    deadline: Mutex<Option<Duration>>,
    cancelled: AtomicBool,
    lines: Mutex<Vec<String>>,
    answers: Mutex<HashMap<String, Answer>>,
    settings: Mutex<HashMap<String, String>>,
    web: Mutex<Option<Web>>,
}

type Answer = Arc<dyn Fn(&Params) -> Result<Reply, UdfError> + Send + Sync>;
type Web = Arc<dyn Fn(&HttpRequest) -> Result<HttpReply, UdfError> + Send + Sync>;

impl Default for TestHost {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TestHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestHost").field("app_dir", &self.app_dir()).finish_non_exhaustive()
    }
}

impl TestHost {
    /// A host with an empty state directory.
    ///
    /// # Panics
    /// There is no room for a temporary directory.
    pub fn new() -> Self {
        Self::over(Store::open(StoreOptions { durability: Durability::Os }))
    }

    /// A host over a store of the test's own, such as one on a disk that stops or fails
    /// (`MemoryBackend`). What [`TestHost::seed`] and [`TestHost::file`] touch is the real disk.
    ///
    /// # Panics
    /// There is no room for a temporary directory.
    pub fn over(store: Store) -> Self {
        let directory =
            tempfile::tempdir().expect("the system has a directory for temporary files");
        Self { directory, store, shared: Arc::default() }
    }

    /// The state directory of calls without `app_dir`.
    pub fn app_dir(&self) -> &Path {
        self.directory.path()
    }

    /// Runs the operation as a host does: parameters as texts, `app_dir` among them if the test wants
    /// another directory.
    ///
    /// # Errors
    /// What the operation answers as an error, its panic included.
    pub fn call(&self, udf: Udf, params: &[(&str, &str)]) -> Result<Reply, UdfError> {
        let mut params: Params = params.iter().copied().collect();
        let app_dir = params.remove("app_dir").filter(|dir| !dir.is_empty());
        let service = self.service(udf, app_dir.map(PathBuf::from));
        invoke(udf.plugin(), &service, &params)
    }

    /// As [`TestHost::call`], for a reply that must be one, as a JSON value.
    ///
    /// # Panics
    /// The operation answers an error.
    #[track_caller]
    pub fn call_json(&self, udf: Udf, params: &[(&str, &str)]) -> serde_json::Value {
        let text = self.call(udf, params).and_then(|reply| reply.to_json());
        let text = text.unwrap_or_else(|error| panic!("the call failed: {error}"));
        serde_json::from_str(&text).expect("a reply is JSON")
    }

    /// A context for calling the plain function, with the access the operation declares. It is one
    /// call: its time stands still.
    pub fn context(&self, udf: Udf) -> TestCall {
        TestCall(ServiceHandle::new(Arc::new(self.service(udf, None))))
    }

    fn service(&self, udf: Udf, app_dir: Option<PathBuf>) -> Service {
        let descriptor = Descriptor::of(udf.plugin()).expect("the operation has a descriptor");
        let app = self.store.app(app_dir.as_deref().unwrap_or(self.app_dir()));
        let session = StoreSession::new(&self.store, app, Arc::new(descriptor.access()));
        let now = *lock(&self.shared.now);
        let session = match now {
            Some(now) => session.at(now.unix_ms()),
            None => session,
        };
        Service { session, shared: self.shared.clone() }
    }

    /// Writes `state/<collection>.json`, whatever the text is.
    ///
    /// # Panics
    /// The disk refuses.
    pub fn seed(&self, collection: &str, text: &str) {
        self.seed_file(&format!("state/{collection}.json"), text);
    }

    /// Writes a file below the state directory: `runs/run-1.ndjson`.
    ///
    /// # Panics
    /// The disk refuses.
    pub fn seed_file(&self, path: &str, text: &str) {
        let path = self.app_dir().join(path);
        let parent = path.parent().expect("a file has a directory");
        std::fs::create_dir_all(parent).expect("the temporary directory can be written");
        #[expect(clippy::disallowed_methods, reason = "a test lays out a state folder by hand")]
        std::fs::write(path, text).expect("the temporary directory can be written");
    }

    /// The bytes of a file below the state directory as text; `None` if there is none.
    ///
    /// # Panics
    /// The file is not UTF-8.
    pub fn file(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.app_dir().join(path)).ok()?;
        Some(String::from_utf8(bytes).expect("the file is text"))
    }

    /// The stored collection as a JSON value; `null` if there is no file.
    ///
    /// # Panics
    /// The file is not JSON.
    pub fn stored(&self, collection: &str) -> serde_json::Value {
        match self.file(&format!("state/{collection}.json")) {
            Some(text) => serde_json::from_str(&text).expect("the collection is JSON"),
            None => serde_json::Value::Null,
        }
    }

    /// The time of all calls from now on.
    pub fn set_now(&self, now: Timestamp) {
        *lock(&self.shared.now) = Some(now);
    }

    /// What calls from now on read as the time that is left.
    pub fn set_deadline(&self, left: Option<Duration>) {
        *lock(&self.shared.deadline) = left;
    }

    /// Whether running and later calls count as given up by their caller.
    pub fn set_cancelled(&self, cancelled: bool) {
        self.shared.cancelled.store(cancelled, Ordering::Relaxed);
    }

    /// Answers calls of another operation, named as the operation under test names it.
    pub fn answer(
        &self,
        op: &str,
        answer: impl Fn(&Params) -> Result<Reply, UdfError> + Send + Sync + 'static,
    ) {
        lock(&self.shared.answers).insert(op.to_owned(), Arc::new(answer));
    }

    /// Answers requests over HTTP.
    pub fn answer_http(
        &self,
        answer: impl Fn(&HttpRequest) -> Result<HttpReply, UdfError> + Send + Sync + 'static,
    ) {
        *lock(&self.shared.web) = Some(Arc::new(answer));
    }

    /// What `[settings]` of the project says under this name.
    pub fn set_setting(&self, name: &str, value: &str) {
        lock(&self.shared.settings).insert(name.to_owned(), value.to_owned());
    }

    /// The log lines so far, as `info: message`.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.shared.lines).clone()
    }
}

/// One call of a plain function: a [`Context`] wherever one is wanted.
#[derive(Debug)]
pub struct TestCall(ServiceHandle<Service>);

impl TestCall {
    /// The fault that would have been the answer of the call, whatever the function returned.
    pub fn fault(&self) -> Option<&UdfError> {
        self.0.context().fault()
    }
}

impl Deref for TestCall {
    type Target = Context;
    fn deref(&self) -> &Context {
        self.0.context()
    }
}

struct Service {
    session: StoreSession,
    shared: Arc<Shared>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)
    }
}

impl HostService for Service {
    fn call(&self, method: Method, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        if let Some(answer) = self.session.call(method, request) {
            return answer;
        }
        match method {
            Method::TRACE => {
                let TraceRequest { level, message } = TraceRequest::decode(request)?;
                let level = ["error", "warn", "info", "debug", "trace"]
                    .get(usize::from(level).saturating_sub(1))
                    .copied()
                    .unwrap_or("trace");
                lock(&self.shared.lines).push(format!("{level}: {message}"));
                Ok(Vec::new())
            }
            Method::CALL => {
                let CallRequest { op, params } = CallRequest::decode(request)?;
                self.session.check_call(op)?;
                let answer = lock(&self.shared.answers).get(op).cloned();
                let answer = answer.ok_or_else(|| {
                    UdfError::new(
                        ErrorKind::NotFound,
                        format!("the test answers no call of `{op}`"),
                    )
                })?;
                answer(&params.into_iter().collect())?.encode()
            }
            Method::DEADLINE => {
                let left = *lock(&self.shared.deadline);
                let left = left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
                Ok(left.encode())
            }
            Method::SETTING => {
                let name = <&str>::decode(request)?;
                Ok(lock(&self.shared.settings).get(name).map(String::as_str).encode())
            }
            Method::HTTP => {
                self.session.access().check_net()?;
                let ask = HttpAsk::decode(request)?;
                let web = lock(&self.shared.web).clone();
                let web =
                    web.ok_or_else(|| UdfError::raised("the test answers no HTTP request"))?;
                let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
                let reply = web(&HttpRequest {
                    method: ask.method.to_owned(),
                    url: ask.url.to_owned(),
                    headers: ask.headers.iter().map(owned).collect(),
                    body: ask.body.to_vec(),
                    limit: Duration::from_millis(ask.limit_ms),
                })?;
                let headers = reply.headers.iter().map(|(name, value)| (&**name, &**value));
                Ok(HttpAnswer {
                    status: reply.status.into(),
                    headers: headers.collect(),
                    body: &reply.body,
                }
                .encode())
            }
            _ => Err(self.unsupported(method)),
        }
    }

    fn cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
