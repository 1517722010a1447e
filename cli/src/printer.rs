//! The one place that writes: data to stdout, everything else to stderr.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

use millstream_graph::Report;
use serde::Serialize;

use crate::exit::Failure;

/// Writes what the command has to say.
pub(crate) struct Printer {
    json: bool,
    /// Why data could not be written, if it could not.
    lost: Mutex<Option<io::Error>>,
}

impl Printer {
    /// With `json`, results are JSON documents.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, lost: Mutex::default() }
    }

    /// Whether results are JSON documents.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Whether stderr is a terminal that can be drawn on.
    pub(crate) fn draws(&self) -> bool {
        !self.json && std::io::stderr().is_terminal()
    }

    /// A result, as a JSON document on one line, or as text.
    pub(crate) fn result(&self, value: &impl Serialize, text: impl FnOnce() -> String) {
        let text = if self.json { to_json(value) } else { text() };
        self.data(&text);
    }

    /// A line of data. A reader that has gone, as `head` does, is no error of ours; any other is kept.
    pub(crate) fn data(&self, text: &str) {
        let mut out = anstream::stdout();
        let written = writeln!(out, "{text}").and_then(|()| out.flush());
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            *self.lost() = Some(error);
        }
    }

    /// Why data could not be written, if it could not.
    pub(crate) fn take_lost(&self) -> Option<io::Error> {
        self.lost().take()
    }

    fn lost(&self) -> MutexGuard<'_, Option<io::Error>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lines for whoever watches. Rows, file names and what functions say come into them, so that nothing but colour
    /// reaches the terminal as a command.
    pub(crate) fn note(&self, text: &str) {
        // There is nowhere left to complain.
        drop(writeln!(anstream::stderr(), "{}", harmless(text)));
    }

    /// A control sequence for the terminal that stderr is.
    pub(crate) fn control(&self, sequence: &str) {
        drop(anstream::stderr().write_all(sequence.as_bytes()));
    }

    /// Why the command did not do what it was asked for.
    pub(crate) fn error(&self, failure: &Failure) {
        let Some(error) = &failure.error else { return };
        if self.json {
            let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
            let help = error.help().map(|help| help.to_string());
            let exit = failure.exit as u8;
            self.note(&to_json(&serde_json::json!({ "error": causes, "help": help, "exit": exit })));
        } else {
            self.note(&format!("{error:?}"));
        }
    }

    /// What is wrong or odd in a job file.
    pub(crate) fn report(&self, report: &Report) {
        if report.is_empty() {
            return;
        }
        if self.json {
            report.records().iter().for_each(|record| self.note(&to_json(record)));
        } else {
            self.note(report.render(std::io::stderr().is_terminal()).trim_end());
        }
    }
}

/// The text without control characters but line breaks, tabs and those that begin a colour.
fn harmless(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut copied = 0;
    for (at, c) in text.char_indices() {
        let kept = !c.is_control() || matches!(c, '\n' | '\t') || begins_colour(&text[at..]);
        if !kept {
            clean.push_str(&text[copied..at]);
            clean.push(char::REPLACEMENT_CHARACTER);
            copied = at + c.len_utf8();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

/// Whether a text begins with the sequence that sets colour and weight: `ESC [`, numbers, `m`.
fn begins_colour(text: &str) -> bool {
    let numbers = text
        .strip_prefix("\u{1b}[")
        .map(|rest| rest.trim_start_matches([';', ':', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']));
    numbers.is_some_and(|rest| rest.starts_with('m'))
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|e| format!("{{\"error\":\"cannot be shown: {e}\"}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_commands_no_terminal() {
        for plain in ["a\tline\nanother", "", "\u{1b}[31m×\u{1b}[0m größer", "\u{1b}[1;38:5m"] {
            assert_eq!(harmless(plain), plain);
        }
        assert_eq!(harmless("a\u{1b}]0;title\u{7}b\u{1b}[2Jc\r\u{9b}d\u{7f}"), "a�]0;title�b�[2Jc��d�");
        assert_eq!(harmless("\u{1b}[31\u{1b}[0m"), "�[31\u{1b}[0m");
    }
}
