//! The seams of the runtime: what an operator, a source, a sink and a user function are to those who run them.
//!
//! Operators see user functions only through [`UserFunction`], never a sandbox; tasks see operators only through
//! [`Operator`], never their insides; connectors see neither.

mod clock;
mod collector;
mod context;
mod error;
mod function;
mod metrics;
mod operator;
mod sink;
mod source;

pub use clock::{Clock, ManualClock, SystemClock};
pub use collector::Collector;
pub use context::OperatorContext;
pub use error::{ConnectorError, FunctionError, OperatorError, RowPolicy, Whose};
pub use function::{
    Accumulated, CallContext, Fired, FunctionFactory, FunctionOutput, KeyedInput, ModuleInspector, Origin,
    Outcome, Rejected, StoredValues, UserFunction,
};
pub use metrics::{Figures, MetricValue, OperatorMetrics};
pub use operator::{Operator, Progress};
pub use sink::{Beginning, Sink, SinkWriter};
pub use source::{
    Assignment, BadRow, Boundedness, Read, Source, SourceOperator, SourceProgress, SourceSnapshot, Split,
    SplitEnumerator, SplitReader,
};
