//! What a guest prints becomes lines of the log.

use std::mem;

use tracing::Level;

use super::super::log::GuestLog;

/// What has been printed since the last end of a line, by stream.
#[derive(Debug, Default)]
pub(in crate::imports) struct Printed {
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Printed {
    /// Writes finished lines to the log and keeps what follows them.
    pub(super) fn write(&mut self, stream: u32, bytes: &[u8], log: &mut GuestLog) {
        let (level, unfinished) = match stream {
            STDOUT => (Level::INFO, &mut self.out),
            _ => (Level::WARN, &mut self.err),
        };
        unfinished.extend_from_slice(bytes);
        for line in finished_lines(unfinished) {
            log.line(level, &line);
        }
    }

    /// Ends all lines: a call is over, and what it printed should not wait for the next one.
    pub(in crate::imports) fn flush(&mut self, log: &mut GuestLog) {
        for (level, unfinished) in [(Level::INFO, &mut self.out), (Level::WARN, &mut self.err)] {
            if !unfinished.is_empty() {
                log.line(level, &text(&mem::take(unfinished)));
            }
        }
    }
}

/// Takes the lines that are finished, or as long as a line may be.
fn finished_lines(unfinished: &mut Vec<u8>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut start = 0;
    loop {
        let rest = &unfinished[start..];
        let within = &rest[..rest.len().min(MAX_LINE_BYTES)];
        let end = match within.iter().position(|&byte| byte == b'\n') {
            Some(at) => at + 1,
            None if within.len() == MAX_LINE_BYTES => MAX_LINE_BYTES,
            None => break,
        };
        lines.push(text(&rest[..end]));
        start += end;
    }
    unfinished.drain(..start);
    lines
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end().to_owned()
}

/// The number that stands for standard output.
pub(super) const STDOUT: u32 = 1;
/// The number that stands for standard error.
pub(super) const STDERR: u32 = 2;
/// A longer line is cut into several.
const MAX_LINE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_when_they_end_or_are_too_long() {
        let mut unfinished = b"one\r\ntwo\nthr".to_vec();
        assert_eq!(finished_lines(&mut unfinished), ["one", "two"]);
        assert_eq!(finished_lines(&mut unfinished), [""; 0]);
        unfinished.extend(vec![b'x'; MAX_LINE_BYTES]);
        let long = finished_lines(&mut unfinished);
        assert_eq!(long.iter().map(String::len).collect::<Vec<_>>(), [MAX_LINE_BYTES]);
        assert_eq!(unfinished, b"xxx");
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        assert_eq!(finished_lines(&mut b"a\xff\n".to_vec()), ["a\u{fffd}"]);
    }
}
