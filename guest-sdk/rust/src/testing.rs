//! Runs functions natively, under plain `cargo test`, with a host in memory.
//!
//! Give a function rows, look at what it emits:
//!
//! ```
//! use millstream::{Input, Output, testing};
//!
//! #[derive(Input)]
//! struct Bid {
//!     price: i64,
//! }
//!
//! #[derive(Output, Debug, PartialEq)]
//! struct Converted {
//!     price: i64,
//! }
//!
//! #[millstream::map]
//! fn convert(bid: Bid) -> Converted {
//!     Converted { price: bid.price * 908 / 1000 }
//! }
//!
//! let results = testing::map::<convert>().run([Bid { price: 1000 }, Bid { price: 500 }]);
//! assert_eq!(results.rows::<Converted>(), [Converted { price: 908 }, Converted { price: 454 }]);
//! ```
//!
//! Each test runs in a thread of its own and so has a host of its own. Starting another function in the same
//! thread starts the host anew. A function that refuses a call, or rows that do not have its columns, fail the
//! test with a text that says so.

mod aggregate;
mod map;
mod process;
mod results;
mod rows;
mod window;

pub use self::aggregate::{AggregateTest, aggregate};
pub use self::map::{MapTest, map};
pub use self::process::{ProcessTest, process};
pub use self::results::Results;
pub use self::rows::{Given, Seen};
pub use self::window::{WindowTest, window};

use crate::context::Level;
use crate::function::{Call, Function, Hooks, Opened};
use crate::host::native;
use crate::manifest::FunctionSpec;

/// What a counter of the function stands at.
pub fn count(metric: &str) -> u64 {
    native::with(|host| host.counts.get(metric).copied().unwrap_or_default())
}

/// What a gauge of the function was set to last.
pub fn gauge(metric: &str) -> Option<f64> {
    native::with(|host| host.gauges.get(metric).copied())
}

/// What the function logged.
pub fn logs() -> Vec<(Level, String)> {
    native::with(|host| host.logs.clone())
}

/// How often the function called the host: a call a batch is what it should be, one a row what it should not.
pub fn host_calls() -> usize {
    native::with(|host| host.calls)
}

/// Opens a function with these parameters only to see whether it opens.
pub fn open<F: Function>(parameters: &[(&str, &str)]) -> Result<(), String> {
    let mut setup = Setup::new::<F>();
    parameters.iter().for_each(|(name, value)| setup.parameter(name, value));
    (setup.open)().map(drop)
}

/// A function that is opened at its first call, so that parameters can be set before.
struct Setup {
    spec: FunctionSpec,
    open: fn() -> Result<Opened, String>,
    opened: Option<Opened>,
}

impl Setup {
    fn new<F: Function>() -> Self {
        let spec = F::spec();
        native::install(&spec);
        Self { spec, open: F::open, opened: None }
    }

    fn parameter(&mut self, name: &str, value: &str) {
        assert!(
            self.spec.parameters.iter().any(|parameter| parameter.name == name),
            "function `{}` has no parameter `{name}`",
            self.spec.name
        );
        native::with(|host| host.parameters.insert(name.to_owned(), value.to_owned()));
    }

    fn opened(&mut self) -> &mut Opened {
        if self.opened.is_none() {
            self.opened = match (self.open)() {
                Ok(opened) => Some(opened),
                Err(reason) => panic!("function `{}` did not open: {reason}", self.spec.name),
            };
        }
        self.opened.as_mut().expect("opened just now")
    }

    /// Calls a hook of the function.
    fn hook(&mut self, call: impl FnOnce(&mut dyn Hooks) -> Call) -> Results {
        native::with(|host| host.keys.clear());
        match call(self.opened().hooks()) {
            Ok(outcome) => {
                let mut results = Results::new(&self.spec);
                results.add(outcome);
                results
            }
            Err(error) => panic!("the call was refused: {error}"),
        }
    }
}

macro_rules! hooks {
    ($test:ident) => {
        impl $test {
            /// Ends the input: the function's hook is called.
            pub fn end_of_input(&mut self) -> Results {
                self.setup.hook(|function| function.end_of_input())
            }

            /// Calls the function's hook before a barrier.
            pub fn before_barrier(&mut self) -> Results {
                self.setup.hook(|function| function.before_barrier())
            }
        }
    };
}

hooks!(MapTest);
hooks!(AggregateTest);
hooks!(WindowTest);
