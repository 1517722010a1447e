//! Write Millstream functions in Rust: typed structs in, typed structs out, state and timers that the host keeps.
//!
//! A function is compiled to a WebAssembly component and runs inside an operator of a job. It is called with
//! whole batches of columns; this crate turns that into code for one row, one key, one group or one window, so
//! that a function never sees a column unless it asks for one.
//!
//! **A function's own memory is no state.** The host may drop an instance at any batch boundary and go on with a
//! new one: after a restart, when a module is replaced, when memory has grown. What has to last belongs into
//! [state](ValueState); a field under `#[memory]` is a cache at best. A function can do nothing but compute: no
//! clock, no files, no threads. Time, chance, log and metrics come from the [`Context`], so that a call can be
//! replayed.
//!
//! # A module
//!
//! A crate with `crate-type = ["cdylib", "rlib"]` lists its functions once, and `millstream build` makes a component
//! of it. Job files name a function `module.function`.
//!
//! ```
//! # use millstream::{Input, Output};
//! #[derive(Input)]
//! struct Bid {
//!     price: i64,
//! }
//!
//! #[derive(Output)]
//! struct Converted {
//!     price: i64,
//! }
//!
//! /// Converts prices.
//! #[millstream::map]
//! fn convert(bid: Bid) -> Converted {
//!     Converted { price: bid.price * 908 / 1000 }
//! }
//!
//! millstream::module! {
//!     name: "auctions",
//!     doc: "Functions over an auction site",
//!     functions: [convert],
//! }
//! # fn main() {}
//! ```
//!
//! Only the columns that an [`Input`] names are sent, and only those of an [`Output`] come back; the host carries
//! the others along (`carry = "extend"`, what map, aggregate and window functions do) or leaves them out (`carry =
//! "replace"`, what process functions do). An output column takes the place of an input column of its name. Fields
//! may borrow (`&str`, `&[u8]`) and may be null (`Option`); [`Field`] lists the types.
//!
//! # Map, filter, flat map
//!
//! One attribute; the return type says how many rows come of one: `T`, `Option<T>`, `Vec<T>` or `impl Iterator<Item
//! = T>`, or `bool` to keep the row as it is or not. A `Result<_, Reject>` of any of these refuses rows. Behind the
//! row may come `&Context`, the row's [`EventTime`], and a reference to [`Parameters`].
//!
//! ```
//! use millstream::{Context, Input, Output, Parameters, Reject, testing};
//!
//! #[derive(Input)]
//! struct Line<'a> {
//!     line: &'a str,
//! }
//!
//! #[derive(Output, Debug, PartialEq)]
//! struct Word<'a> {
//!     word: &'a str,
//! }
//!
//! #[derive(Parameters)]
//! struct Limits {
//!     /// Shortest word that counts.
//!     #[parameter(default = 1)]
//!     shortest: i64,
//! }
//!
//! /// Makes of each line one row a word.
//! #[millstream::map(carry = "replace")]
//! fn split<'a>(line: Line<'a>, limits: &Limits, ctx: &Context) -> Result<Vec<Word<'a>>, Reject> {
//!     if line.line.contains('\0') {
//!         return Err(Reject::new("a line with a null character"));
//!     }
//!     ctx.count("lines", 1);
//!     let words = line.line.split_whitespace().filter(|word| word.len() as i64 >= limits.shortest);
//!     Ok(words.map(|word| Word { word }).collect())
//! }
//!
//! let results = testing::map::<split>().parameter("shortest", "3").run([Line { line: "to be or not" }]);
//! assert_eq!(results.rows::<Word>(), [Word { word: "not" }]);
//! ```
//!
//! # Process: keyed state and timers
//!
//! A struct under `#[derive(Function)]` holds [`ValueState`], [`ListState`], [`MapState`] and [`OperatorState`]
//! handles, parameters (`#[parameter]`) and memory (`#[memory]`); the methods are in an impl block under
//! `#[millstream::process]`. Behind key and row may come `&mut ProcessContext`, which sets timers, the row's
//! [`EventTime`], and a [`Collector`] for each output: the first is the main one, others are side outputs by
//! their names. A method `on_timer` is called for timers; with several inputs, each has a method under `#[input]`.
//!
//! State is read and written a batch at a time, whatever the code does row by row.
//!
//! ```
//! use millstream::{Collector, Function, Input, Output, ProcessContext, Timer, ValueState, testing};
//!
//! #[derive(Input)]
//! struct Click {
//!     time: i64,
//! }
//!
//! #[derive(Output, Debug, PartialEq)]
//! struct Visit<'a> {
//!     visitor: &'a str,
//!     clicks: i64,
//! }
//!
//! #[derive(Function)]
//! struct Visits {
//!     clicks: ValueState<i64>,
//!     #[parameter(default = 60000)]
//!     pause: i64,
//! }
//!
//! /// Counts a visitor's clicks until a minute after the first.
//! #[millstream::process]
//! impl Visits {
//!     fn process(&mut self, _visitor: &str, click: Click, ctx: &mut ProcessContext) {
//!         let clicks = self.clicks.get().copied().unwrap_or_default();
//!         if clicks == 0 {
//!             ctx.set_timer(click.time + self.pause);
//!         }
//!         self.clicks.set(clicks + 1);
//!     }
//!
//!     fn on_timer(&mut self, visitor: &str, _timer: Timer, out: &mut Collector<Visit>) {
//!         if let Some(clicks) = self.clicks.take() {
//!             out.emit(Visit { visitor, clicks });
//!         }
//!     }
//! }
//!
//! let mut test = testing::process::<Visits>();
//! test.rows([("ann", Click { time: 0 }), ("bob", Click { time: 5 }), ("ann", Click { time: 9 })]);
//! assert_eq!(test.watermark(60_000).rows::<Visit>(), [Visit { visitor: "ann", clicks: 2 }]);
//! ```
//!
//! # Life cycle
//!
//! Methods of their own are `open`, `close`, `before_barrier` and `end_of_input`; what the last two emit, by
//! [`Collector::emit_at`], goes out before the barrier or the end, on an output that replaces. Every kind of function may
//! have them: a map or window function is then an impl block too, with the methods `map` or `apply`. It has no keys and
//! so no keyed state, but [`OperatorState`] of its subtask, which is there in `open` already.
//!
//! ```
//! use millstream::{Collector, Function, Input, OperatorState, Output, Timestamp, testing};
//!
//! #[derive(Input)]
//! struct Line<'a> {
//!     line: &'a str,
//! }
//!
//! #[derive(Output, Debug, PartialEq)]
//! struct Numbered {
//!     number: i64,
//!     line: String,
//! }
//!
//! #[derive(Function)]
//! struct Numbers {
//!     last: OperatorState<i64>,
//! }
//!
//! /// Numbers the lines of a subtask, and tells how many there were.
//! #[millstream::map(carry = "replace")]
//! impl Numbers {
//!     fn open(&mut self) {
//!         self.last.get_mut().resize(1, 0);
//!     }
//!
//!     fn map(&mut self, line: Line<'_>) -> Numbered {
//!         let last = &mut self.last.get_mut()[0];
//!         *last += 1;
//!         Numbered { number: *last, line: line.line.to_owned() }
//!     }
//!
//!     fn end_of_input(&mut self, out: &mut Collector<Numbered>) {
//!         let number = self.last.get()[0];
//!         out.emit_at(Timestamp(0), Numbered { number, line: "lines".to_owned() });
//!     }
//! }
//!
//! let mut test = testing::map::<Numbers>();
//! test.run([Line { line: "a" }, Line { line: "b" }]);
//! let end = test.end_of_input().rows::<Numbered>();
//! assert_eq!(end, [Numbered { number: 2, line: "lines".to_owned() }]);
//! ```
//!
//! A state that is kept by key is refused where there is no key:
//!
//! ```compile_fail
//! # use millstream::{Function, Output, ValueState};
//! # #[derive(Output)]
//! # struct Number {
//! #     number: i64,
//! # }
//! #[derive(Function)]
//! struct Numbers {
//!     last: ValueState<i64>,
//! }
//!
//! #[millstream::map]
//! impl Numbers {
//!     fn map(&mut self, _line: ()) -> Number {
//!         Number { number: 1 }
//!     }
//! }
//! ```
//!
//! # Aggregate
//!
//! The host groups rows by key and window and keeps a `#[derive(State)]` accumulator for each; the function adds
//! rows to it, merges two, and makes rows of it. A new accumulator is its type's default, or what a method
//! `create(&self)` returns. `finish` may ask for key and window. Without a method `merge` a function only goes with
//! windows that merge nothing: tumbling and global ones.
//!
//! ```
//! use millstream::{Function, Input, Output, State, Window, testing};
//!
//! #[derive(Input)]
//! struct Reading {
//!     degrees: f64,
//! }
//!
//! #[derive(State, Default)]
//! struct Sum {
//!     readings: i64,
//!     degrees: f64,
//! }
//!
//! #[derive(Output, Debug, PartialEq)]
//! struct Mean {
//!     degrees: f64,
//! }
//!
//! #[derive(Function)]
//! struct MeanTemperature {}
//!
//! /// The mean of a group.
//! #[millstream::aggregate]
//! impl MeanTemperature {
//!     fn accumulate(&self, sum: &mut Sum, reading: Reading) {
//!         sum.readings += 1;
//!         sum.degrees += reading.degrees;
//!     }
//!
//!     fn merge(&self, into: &mut Sum, other: Sum) {
//!         into.readings += other.readings;
//!         into.degrees += other.degrees;
//!     }
//!
//!     fn finish(&self, sum: &Sum, _station: &str, _window: Window) -> Mean {
//!         Mean { degrees: sum.degrees / sum.readings as f64 }
//!     }
//! }
//!
//! let rows = [("north", Reading { degrees: 1.0 }), ("north", Reading { degrees: 2.0 })];
//! assert_eq!(testing::aggregate::<MeanTemperature>().run(rows).rows::<Mean>(), [Mean { degrees: 1.5 }]);
//! ```
//!
//! # Window
//!
//! A function of all rows of a window. Without a key (a window over the whole stream) the key is `()`.
//!
//! ```
//! use millstream::{Input, Output, Window, testing};
//!
//! #[derive(Input)]
//! struct Reading {
//!     degrees: f64,
//! }
//!
//! #[derive(Output, Debug, PartialEq)]
//! struct Median {
//!     degrees: f64,
//! }
//!
//! /// The middle one of a window's readings.
//! #[millstream::window]
//! fn median(_station: &str, _window: Window, readings: &[Reading]) -> Option<Median> {
//!     let mut degrees: Vec<f64> = readings.iter().map(|reading| reading.degrees).collect();
//!     degrees.sort_by(f64::total_cmp);
//!     degrees.get(degrees.len() / 2).map(|&degrees| Median { degrees })
//! }
//!
//! let rows = [3.0, 1.0, 2.0].map(|degrees| ("north", Reading { degrees }));
//! assert_eq!(testing::window::<median>().run(rows).rows::<Median>(), [Median { degrees: 2.0 }]);
//! ```
//!
//! # State that lasts
//!
//! A `#[derive(State)]` struct is one column a field, so a savepoint is a table that can be read; a plain field is
//! one column; any serde type is one binary column inside [`Postcard`].
//!
//! When a job goes on from a savepoint, the host takes over by itself that numbers have become wider, that columns are
//! new and may be null, have gone, or stand in another order. Anything else takes a function, and a version:
//!
//! ```
//! use millstream::State;
//!
//! #[derive(State)]
//! struct Celsius { degrees: f64 }
//!
//! #[derive(State)]
//! #[state(version = 2, migrates(1))]
//! struct Kelvin { kelvin: f64, since: String }
//!
//! #[millstream::migrate(from = 1)]
//! fn kelvin(stored: Celsius) -> Kelvin {
//!     Kelvin { kelvin: stored.degrees + 273.15, since: String::new() }
//! }
//! # assert_eq!(kelvin(Celsius { degrees: 0.0 }).kelvin, 273.15);
//! ```
//!
//! Every stored value is handed to it once, at the restore.
//!
//! # When something goes wrong
//!
//! A panic ends the instance and not the state: its text and place stand in the job's error. A row that cannot be
//! handled is refused with [`Reject`] instead, and the operator's policy decides what becomes of it.
//!
//! # Columns
//!
//! `#[millstream::map(columns)]` takes a struct of vectors under `#[derive(Columns)]` and gives one back, without a loop
//! over rows: see [`Columns`].

#[doc(hidden)]
pub mod __private {
    pub use crate::aggregate::{accumulated, accumulators, merge};
    pub use crate::column::{check_positions, check_rows, check_runs};
    pub use crate::columns::{Taken, column_data, columns_outcome};
    pub use crate::context::log;
    pub use crate::function::Times;
    pub use crate::parameters::{read as parameter_read, spec as parameter_spec};
    pub use crate::reject::Rejections;
    pub use crate::row::column;
    pub use crate::state::migration;

    #[cfg(target_family = "wasm")]
    pub use crate::component::{Component, bindings, bindings::export};
}

mod aggregate;
pub mod bits;
pub mod column;
mod columns;
#[cfg(target_family = "wasm")]
mod component;
mod context;
mod field;
pub mod function;
mod host;
pub mod manifest;
mod outcome;
mod parameters;
mod reject;
mod row;
mod state;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod time;
mod timers;

pub use millstream_macros::{
    Columns, Function, Input, Output, Parameters, State, aggregate, map, migrate, module, process, window,
};

pub use self::columns::{Bytes, ColumnData, Columns, Nullable, Picked, Text, Timestamps};
pub use self::context::{Context, Level, TaskInfo};
pub use self::field::{BytesView, Field, OptionalBuilder, OptionalView, Postcard, TextView};
pub use self::host::Cells;
pub use self::outcome::Collector;
pub use self::parameters::{ParameterValue, Parameters};
pub use self::reject::Reject;
pub use self::row::{Input, Output, State};
pub use self::state::{Handle, ListState, MapKey, MapState, Migrate, OperatorState, UnionState, ValueState};
pub use self::time::{Clock, Date, EventTime, Timer, Timestamp, Window};
pub use self::timers::ProcessContext;
