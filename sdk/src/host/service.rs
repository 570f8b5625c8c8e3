use std::ptr::with_exposed_provenance;
use std::sync::Arc;

use abi_stable::prefix_type::WithMetadata;
use abi_stable::sabi_types::StaticRef;
use abi_stable::std_types::{RResult, RSlice, RVec};

use crate::abi::{HostApi, HostApiRef, HostHandle, Method, PluginRef};
use crate::context::Context;
use crate::error::{ErrorKind, UdfError};
use crate::guard::guarded;
use crate::params::Params;
use crate::reply::Reply;
use crate::wire::Wire;

/// What a host answers during one call. Shared between the threads of an operation, hence `Sync`.
pub trait HostService: Sync {
    /// Answers one request: the frames are those of [`crate::wire`], one type per method.
    ///
    /// # Errors
    /// Reach the operation as they stand. A method the host does not know is
    /// [`ErrorKind::Unsupported`]; [`unsupported`](HostService::unsupported) words it.
    fn call(&self, method: Method, request: &[u8]) -> Result<Vec<u8>, UdfError>;

    /// Whether the caller has gone away or the deadline has passed.
    fn cancelled(&self) -> bool;

    /// The error for a method that is not served here.
    fn unsupported(&self, method: Method) -> UdfError {
        UdfError::new(
            ErrorKind::Unsupported,
            format!(
                "the host does not know request {} of the plugin: update the host, or rebuild the \
                 plugin with the host's sdk",
                method.0
            ),
        )
    }
}

/// Runs a plugin's operation.
///
/// # Errors
/// What the operation answers as an error, its panic included.
pub fn invoke(
    plugin: PluginRef,
    service: &dyn HostService,
    params: &Params,
) -> Result<Reply, UdfError> {
    let running = Running { service };
    let request = params.frame().encode();
    match plugin.call()(HOST_API, running.handle(), request.as_slice().into()) {
        RResult::ROk(frame) => Reply::decode(&frame),
        RResult::RErr(frame) => Err(UdfError::decode(&frame)),
    }
}

/// Runs a plain function as a plugin's operation would run: for unit tests and built-in operations.
pub fn with_context<T>(service: &dyn HostService, run: impl FnOnce(&Context) -> T) -> T {
    let running = Running { service };
    let context = Context::new(HOST_API, running.handle());
    run(&context)
}

/// A context together with the service behind it, for callers that cannot nest.
#[derive(Debug)]
pub struct ServiceHandle<S> {
    context: Context,
    // After `context`, which refers to them: fields drop in order.
    #[expect(dead_code, reason = "`context` refers to it")]
    running: Box<Running<'static>>,
    service: Arc<S>,
}

impl<S: HostService + 'static> ServiceHandle<S> {
    /// A context over this service.
    pub fn new(service: Arc<S>) -> Self {
        // SAFETY: the reference is used only through `context`, and `service` keeps its target alive
        // for at least as long: it is private, never replaced, and dropped last.
        let borrowed: &'static S = unsafe { &*Arc::as_ptr(&service) };
        let running = Box::new(Running { service: borrowed });
        Self { context: Context::new(HOST_API, running.handle()), running, service }
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The service.
    pub fn service(&self) -> &S {
        &self.service
    }
}

/// One running call: what a [`HostHandle`] names by its address.
struct Running<'a> {
    service: &'a dyn HostService,
}

impl std::fmt::Debug for Running<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Running")
    }
}

impl Running<'_> {
    fn handle(&self) -> HostHandle {
        HostHandle::new((&raw const *self).expose_provenance())
    }
}

/// Runs `work` on the service a handle names; what panics in it becomes its message.
fn serve<T>(handle: HostHandle, work: impl FnOnce(&dyn HostService) -> T) -> Result<T, String> {
    // SAFETY: a handle is made by `Running::handle` only and is passed to one call, whose `Running`
    // outlives it: `invoke` and `with_context` keep it on their stack until the call has returned,
    // `ServiceHandle` until its context is gone. The sdk's `Context` is the plugin's only holder of
    // the handle, is lent to the operation for the length of the call and cannot be cloned.
    let running: &Running<'_> = unsafe { &*with_exposed_provenance(handle.raw()) };
    guarded(|| work(running.service))
}

extern "C" fn host_call(
    handle: HostHandle,
    method: u32,
    request: RSlice<'_, u8>,
) -> RResult<RVec<u8>, RVec<u8>> {
    let outcome = serve(handle, |service| {
        service.call(Method(method), request.as_slice()).map_err(|error| error.encode())
    });
    match outcome {
        Ok(Ok(reply)) => RResult::ROk(reply.into()),
        Ok(Err(error)) => RResult::RErr(error.into()),
        Err(message) => {
            let message = format!("the host panicked at request {method}: {message}");
            RResult::RErr(UdfError::new(ErrorKind::Internal, message).encode().into())
        }
    }
}

extern "C" fn host_cancelled(handle: HostHandle) -> bool {
    // A host that panics here is no host to go on with.
    serve(handle, |service| service.cancelled()).unwrap_or(true)
}

const HOST_API_VALUE: *const WithMetadata<HostApi> =
    &WithMetadata::new(HostApi { call: host_call, cancelled: host_cancelled });

const HOST_API: HostApiRef = {
    // SAFETY: `HOST_API_VALUE` points to a promoted constant, which lives as long as the process.
    let value = unsafe { StaticRef::from_raw(HOST_API_VALUE) };
    HostApiRef(value.as_prefix())
};
