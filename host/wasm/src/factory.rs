//! Makes a function for each subtask.

use std::sync::Arc;

use millstream_operator::{FunctionError, FunctionFactory, OperatorContext, UserFunction};
use millstream_types::{Function, FunctionKind};

use crate::{
    function::WasmFunction, imports::Environment, instance::Purpose, module::Module, options::FunctionLimits,
};

/// Makes one function of a module for each subtask that runs it.
#[derive(Clone, Debug)]
pub struct WasmFunctionFactory {
    module: Module,
    function: Arc<Function>,
    limits: Arc<FunctionLimits>,
    environment: Environment,
}

impl WasmFunctionFactory {
    pub(crate) fn new(module: Module, function: Arc<Function>, limits: Arc<FunctionLimits>) -> Self {
        Self { module, function, limits, environment: Environment::default() }
    }

    /// Grants variables, with their values, that a component sees as its environment through WASI. Without any the
    /// environment is empty.
    #[must_use]
    pub fn with_environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = variables.into_iter().collect();
        self
    }

    /// What the manifest says of the function.
    pub fn function(&self) -> &Function {
        &self.function
    }
}

impl FunctionFactory for WasmFunctionFactory {
    fn create(&self, ctx: &OperatorContext) -> Result<Box<dyn UserFunction>, FunctionError> {
        if self.function.kind == FunctionKind::Async {
            let problem = format!(
                "function `{}` is async, which this version of the host does not run",
                self.function.name
            );
            return Err(self.module.error(problem));
        }
        Ok(Box::new(WasmFunction::new(Purpose {
            module: self.module.clone(),
            function: self.function.clone(),
            place: Arc::new(ctx.clone()),
            limits: self.limits.clone(),
            environment: self.environment.clone(),
        })))
    }
}
