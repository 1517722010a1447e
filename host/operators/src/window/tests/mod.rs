//! Window operators driven by scripts: rows, watermarks and processing time in, everything that comes out as text.

mod function;
mod late;
mod model;
mod session;
mod sliding;
mod support;
mod triggers;
mod tumbling;

use expect_test::Expect;
use support::Setup;

/// Runs a script and compares what comes out of each of its steps.
///
/// A step is rows separated by `;`, as in `@1000 a 1; @2000 b 2`, or `watermark 5000`, `time 5000` (processing time),
/// or `end`.
fn check(setup: Setup, script: &[&str], expected: Expect) {
    expected.assert_eq(&support::run(setup, script));
}
