//! One instance of a module in a store of its own.

use std::sync::Arc;

use millstream_operator::{CallContext, FunctionError, OperatorContext};
use millstream_types::Function;
use wasmtime::{Store, component::InstancePre};

use crate::{
    exports::{self, Exports},
    fault::Failed,
    imports::{self, Environment, Guest, Moment},
    module::Module,
    options::FunctionLimits,
};

/// An instance in which a function has been opened.
pub(crate) struct Instance {
    store: Store<Guest>,
    exports: Exports,
}

/// What an instance is made for.
pub(crate) struct Purpose {
    pub(crate) module: Module,
    pub(crate) function: Arc<Function>,
    pub(crate) place: Arc<OperatorContext>,
    pub(crate) limits: Arc<FunctionLimits>,
    pub(crate) environment: Environment,
}

impl Instance {
    /// Makes an instance and opens the function in it, with what the operator lends for that.
    pub(crate) async fn open(purpose: &Purpose, lent: &mut CallContext) -> Result<Self, FunctionError> {
        let mut guest = purpose.guest();
        guest.begin(Moment::Opening, lent);
        let mut store = store(&purpose.module, guest);
        let opened = Self::open_in(&mut store, purpose).await;
        store.data_mut().end(lent);
        Ok(Self { exports: opened?, store })
    }

    async fn open_in(store: &mut Store<Guest>, purpose: &Purpose) -> Result<Exports, FunctionError> {
        let Purpose { module, function, limits, .. } = purpose;
        let failed = |store: &mut Store<Guest>, call, error: &wasmtime::Error| {
            purpose.failed(call, store.data_mut().take_panic()).explain(error)
        };
        let instance = match instantiate(module.pre(), store).await {
            Ok(instance) => instance,
            Err(error) => return Err(failed(store, "instantiation", &error)),
        };
        let exports = Exports::load(store, &instance, module.interfaces(), function.kind)
            .map_err(|error| module.error(format!("{error:#}")))?;
        store.data_mut().grant(module.ticks(limits));
        store.set_epoch_deadline(1);
        match exports.open.call_async(&mut *store, (&function.name,)).await {
            Ok((Ok(()),)) => Ok(exports),
            Ok((Err(message),)) => Err(FunctionError::Refused { function: function.name.clone(), message }),
            Err(error) => Err(failed(store, "open", &error)),
        }
    }

    /// Makes one call with what the operator lends for it. After an error other than a refusal the instance must not
    /// be called again.
    pub(crate) async fn call<R>(
        &mut self,
        purpose: &Purpose,
        name: &'static str,
        lent: &mut CallContext,
        export: impl AsyncFnOnce(&mut Store<Guest>, &Exports) -> wasmtime::Result<(R,)>,
    ) -> Result<R, FunctionError> {
        self.store.data_mut().grant(purpose.module.ticks(&purpose.limits));
        self.store.data_mut().begin(Moment::Call, lent);
        self.store.set_epoch_deadline(1);
        let result = export(&mut self.store, &self.exports).await;
        self.store.data_mut().end(lent);
        result.map(|(returned,)| returned).map_err(|error| {
            let panic = self.store.data_mut().take_panic();
            purpose.failed(name, panic).explain(&error)
        })
    }

    /// Bytes of linear memory in use.
    pub(crate) fn memory_used(&self) -> usize {
        self.store.data().memory_used()
    }
}

impl Purpose {
    fn guest(&self) -> Guest {
        let (function, place) = (Some(self.function.clone()), Some(self.place.clone()));
        Guest::new(function, place, self.limits.clone(), self.environment.clone())
    }

    fn failed(&self, call: &'static str, panic: Option<String>) -> Failed<'_> {
        let stack_bytes = self.module.stack_bytes();
        Failed { function: &self.function.name, call, limits: &self.limits, stack_bytes, panic }
    }
}

/// Asks a module for its manifest. Nothing that it may import works but log and panic text.
pub(crate) async fn describe(module: &Module) -> Result<String, FunctionError> {
    let limits = module.default_limits();
    let mut store = store(module, Guest::new(None, None, limits.clone(), Environment::default()));
    let returned = async {
        let instance = instantiate(module.pre(), &mut store).await?;
        let describe = exports::describe(&mut store, &instance, module.interfaces())?;
        store.data_mut().grant(module.ticks(limits));
        store.set_epoch_deadline(1);
        describe.call_async(&mut store, ()).await
    };
    match returned.await {
        Ok((json,)) => Ok(json),
        Err(error) => {
            let panic = store.data_mut().take_panic();
            let failed = Failed {
                function: "manifest",
                call: "describe",
                limits,
                stack_bytes: module.stack_bytes(),
                panic,
            };
            Err(module.error(failed.explain(&error).to_string()))
        }
    }
}

fn store(module: &Module, guest: Guest) -> Store<Guest> {
    let mut store = Store::new(module.pre().engine(), guest);
    imports::limit(&mut store);
    store
}

/// Instantiates; what a module runs while it starts is held to the budget of a call.
async fn instantiate(
    pre: &InstancePre<Guest>,
    store: &mut Store<Guest>,
) -> wasmtime::Result<wasmtime::component::Instance> {
    store.data_mut().grant(INSTANTIATION_TICKS);
    store.set_epoch_deadline(1);
    pre.instantiate_async(store).await
}

/// Ticks that a module may compute for while it starts.
const INSTANTIATION_TICKS: u64 = 1000;
