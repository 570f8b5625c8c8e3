//! What stands between the boundary and an author's function. The `#[udf]` macro writes an
//! [`Operation`]; the rest is generic over it, so that the macro's output stays small.

use std::fmt;
use std::marker::PhantomData;

use abi_stable::library::{
    __call_root_module_loader, CheckTypeLayout, LibHeader, RootModuleResult,
};
use abi_stable::prefix_type::WithMetadata;
use abi_stable::sabi_types::StaticRef;
use abi_stable::std_types::{RResult, RSlice, RVec};

use crate::abi::{HostApiRef, HostHandle, INTERFACE_VERSION, Plugin, PluginRef};
use crate::context::Context;
use crate::descriptor::UdfSpec;
use crate::error::{ErrorKind, UdfError};
use crate::guard::guarded;
use crate::params::Arguments;
use crate::reply::Reply;
use crate::wire::{CallFrame, Wire};

/// An author's function with its parameters read from a call. Written by `#[udf]`.
pub trait Operation: 'static {
    /// What it declares.
    const SPEC: &'static UdfSpec;

    /// Reads the parameters and calls the function.
    ///
    /// # Errors
    /// A parameter cannot be read, or what the function returns.
    fn run(context: &Context, arguments: &Arguments<'_>) -> Result<Reply, UdfError>;
}

/// A crate's operation as its library exports it: what `#[udf]` leaves behind as the constant `UDF`.
#[derive(Clone, Copy)]
pub struct Udf {
    plugin: PluginRef,
}

impl Udf {
    /// The operation as a plugin.
    pub const fn of<O: Operation>() -> Self {
        Self { plugin: Export::<O>::PLUGIN }
    }

    /// What a host loads.
    pub const fn plugin(self) -> PluginRef {
        self.plugin
    }
}

impl fmt::Debug for Udf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Udf")
    }
}

/// The header of the library that exports `O`; `#[udf]` puts it under the one symbol hosts look for.
pub const fn header<O: Operation>() -> LibHeader {
    // SAFETY: `load::<O>` returns what `__call_root_module_loader` made of a `PluginRef`.
    unsafe { LibHeader::from_constructor::<PluginRef>(load::<O>, CheckTypeLayout::Yes) }
}

extern "C" fn load<O: Operation>() -> RootModuleResult {
    // Catches a panic itself.
    __call_root_module_loader(|| Export::<O>::PLUGIN)
}

struct Export<O>(PhantomData<O>);

impl<O: Operation> Export<O> {
    const VALUE: *const WithMetadata<Plugin> = &WithMetadata::new(Plugin {
        interface: INTERFACE_VERSION,
        descriptor: descriptor::<O>,
        call: call::<O>,
    });
    const PLUGIN: PluginRef = {
        // SAFETY: `VALUE` points to a promoted constant, which lives as long as the library.
        let value = unsafe { StaticRef::from_raw(Self::VALUE) };
        PluginRef(value.as_prefix())
    };
}

extern "C" fn descriptor<O: Operation>() -> RVec<u8> {
    // Empty tells the host that there was a panic.
    guarded(|| O::SPEC.to_json().into_bytes()).unwrap_or_default().into()
}

extern "C" fn call<O: Operation>(
    api: HostApiRef,
    handle: HostHandle,
    request: RSlice<'_, u8>,
) -> RResult<RVec<u8>, RVec<u8>> {
    // Everything the call makes is dropped inside: arguments, context, the function's reply.
    let outcome = guarded(|| {
        let context = Context::new(api, handle);
        let outcome = answer::<O>(&context, request.as_slice());
        // The fault comes first: what the function made of it is no answer.
        match context.fault() {
            Some(fault) => Err(fault.encode()),
            None => outcome.map_err(|error| error.encode()),
        }
    });
    match outcome {
        Ok(Ok(reply)) => RResult::ROk(reply.into()),
        Ok(Err(error)) => RResult::RErr(error.into()),
        Err(message) => {
            let message = format!("`{}` panicked: {message}", O::SPEC.op);
            RResult::RErr(UdfError::new(ErrorKind::Panicked, message).encode().into())
        }
    }
}

fn answer<O: Operation>(context: &Context, request: &[u8]) -> Result<Vec<u8>, UdfError> {
    let arguments = Arguments::new(CallFrame::decode(request)?, O::SPEC)?;
    O::run(context, &arguments)?.encode()
}
