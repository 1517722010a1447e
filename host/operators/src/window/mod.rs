//! Windows: groups of rows of a key by time, which a function aggregates as rows come or sees whole in the end.
//!
//! | module | holds |
//! |---|---|
//! | `spec` | what a window operator is made of |
//! | `layout` | which windows there are, and the panes that they are kept in |
//! | `assign` | which rows of a batch fall into which panes |
//! | `panes` | what windows hold and how it comes in and out |
//! | `running` | how slices that many windows share are merged |
//! | `entry` | what happens to rows before they come into windows, and to late ones |
//! | `interval`, `count`, `session_count` | the continuous and the count trigger |
//! | `shared` | the operator of windows that all keys share: tumbling, sliding, global |
//! | `session` | the operator of sessions, which every key has for itself |
//! | `calls`, `fired` | the calls of the function and what becomes of fired groups |
//!
//! Semantics, as Flink has them unless it says otherwise here:
//!
//! - A window is `[start, end)`. It fires when its clock has passed its last time, `end - 1`; what it makes has that
//!   time. Windows fire in the order of their ends.
//! - A row is late for a window when `end - 1 + lateness <= watermark`. One that is late for all windows of its goes
//!   to the late port, or is dropped and counted. A row that is late for some is added to the others.
//! - A window that has ended and still takes rows fires again for the keys that get some, once a batch.
//! - Rows in gaps between windows (slide longer than size) belong nowhere and are left out.
//! - A continuous trigger fires for all keys of a window at the same time, and the window still fires at its end.
//! - The function is asked after a row has been put into a session, so one that it refuses has made that longer. The
//!   rows of sessions that have become one stand one session behind the other.
//! - At the end of input event-time windows fire; open processing-time windows are dropped and counted.

mod assign;
mod calls;
mod columns;
mod count;
mod entry;
mod fired;
mod interval;
mod layout;
mod panes;
mod running;
mod session;
mod session_count;
mod shared;
mod spec;
#[cfg(test)]
mod tests;

use millstream_operator::{Operator, OperatorContext, UserFunction};
use millstream_state::Overflows;

use layout::Layout;
use session::SessionWindows;
use shared::SharedWindows;
pub use spec::{FIRED_ROWS, KeyColumn, Trigger, WindowAssigner, WindowBounds, WindowFunction, WindowSpec};

/// The operator for windows of a spec, for the subtask of `ctx`. What has no room in memory goes where `overflows` says.
pub fn window_operator(
    spec: WindowSpec,
    function: Box<dyn UserFunction>,
    ctx: OperatorContext,
    overflows: &Overflows<'_>,
) -> Box<dyn Operator> {
    match Kind::of(&spec) {
        Kind::Shared(layout) => Box::new(SharedWindows::new(spec, layout, function, ctx, overflows)),
        Kind::Sessions { gap } => Box::new(SessionWindows::new(spec, gap, function, ctx, overflows)),
    }
}

/// Whose the windows are.
enum Kind {
    /// All keys'.
    Shared(Layout),
    /// Each key's own.
    Sessions { gap: i64 },
}

impl Kind {
    fn of(spec: &WindowSpec) -> Self {
        match spec.assigner {
            WindowAssigner::Tumbling { size, offset } => Self::Shared(Layout::tumbling(size, offset)),
            WindowAssigner::Sliding { size, slide, offset } => {
                Self::Shared(Layout::sliding(size, slide, offset, spec.shares_slices()))
            }
            WindowAssigner::Session { gap } => Self::Sessions { gap },
            WindowAssigner::Global => Self::Shared(Layout::Global),
        }
    }
}
