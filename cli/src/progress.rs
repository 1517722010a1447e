//! Progress of a running job on stderr: a table redrawn in place on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use millstream_worker::JobStatus;

use crate::{printer::Printer, summary};

/// How often a line is written where nothing can be redrawn.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows how far a job is.
pub(crate) struct ProgressView<'a> {
    printer: &'a Printer,
    quiet: bool,
    drawn: usize,
    last_line: Instant,
}

impl<'a> ProgressView<'a> {
    pub(crate) fn new(printer: &'a Printer, quiet: bool) -> Self {
        Self { printer, quiet, drawn: 0, last_line: Instant::now() }
    }

    /// Shows the figures of this moment.
    pub(crate) fn show(&mut self, status: &JobStatus) {
        if self.quiet || status.elapsed_ms < 200 {
            return;
        }
        if self.printer.draws() {
            self.erase();
            let mut table = summary::operators(&status.operators, status.elapsed_ms);
            if let Some(checkpoints) = &status.checkpoints {
                table += "\n";
                table += &summary::checkpoint_line(checkpoints);
            }
            self.drawn = table.lines().count();
            self.printer.note(&table);
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            self.printer.note(&line(status, self.printer.json()));
        }
    }

    /// Takes what was drawn away, to make room for the end.
    pub(crate) fn finish(&mut self) {
        self.erase();
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            // Up to the first line drawn, then clear to the end of the screen.
            self.printer.control(&format!("\x1b[{}F\x1b[J", self.drawn));
            self.drawn = 0;
        }
    }
}

fn line(status: &JobStatus, json: bool) -> String {
    if json {
        return serde_json::to_string(status).unwrap_or_default();
    }
    let operators = status.operators.iter().map(|o| {
        let (busy, blocked) = (o.busy * 100.0, o.backpressured * 100.0);
        format!(
            "{} in {} out {} busy {busy:.0} % blocked {blocked:.0} %",
            o.name, o.records_in, o.records_out
        )
    });
    let operators = operators.chain(status.checkpoints.as_ref().map(summary::checkpoint_line));
    format!("{} s: {}", status.elapsed_ms / 1000, operators.collect::<Vec<_>>().join("; "))
}
