//! A parsed JSON value as text again.

use arrow_json::reader::{Tape, TapeElement};

/// The value at a position of the tape, without white space.
pub(crate) fn json_text(tape: &Tape<'_>, position: u32) -> String {
    let mut text = String::new();
    write(tape, position, &mut text);
    text
}

/// Walks over the elements of a value; what is open is kept on a stack of its own, however deep it goes.
fn write(tape: &Tape<'_>, position: u32, out: &mut String) {
    let mut open: Vec<Open> = Vec::new();
    let mut at = position;
    loop {
        let element = tape.get(at);
        let ends = matches!(element, TapeElement::EndObject(_) | TapeElement::EndList(_));
        if let Some(open) = open.last_mut().filter(|_| !ends) {
            out.push_str(open.separator());
            open.values += 1;
        }
        match element {
            TapeElement::StartObject(_) => begin(&mut open, true, '{', out),
            TapeElement::StartList(_) => begin(&mut open, false, '[', out),
            TapeElement::EndObject(_) => end(&mut open, '}', out),
            TapeElement::EndList(_) => end(&mut open, ']', out),
            TapeElement::String(index) => out.push_str(&quoted(tape.get_string(index))),
            TapeElement::Number(index) => out.push_str(tape.get_string(index)),
            TapeElement::True => out.push_str("true"),
            TapeElement::False => out.push_str("false"),
            // The other kinds of number come from values that were never text.
            _ => out.push_str("null"),
        }
        if open.is_empty() {
            return;
        }
        at += 1;
    }
}

/// An object or list that is not closed yet; keys and values of an object both count as values.
struct Open {
    object: bool,
    values: usize,
}

impl Open {
    fn separator(&self) -> &'static str {
        match self.values {
            0 => "",
            n if self.object && n % 2 == 1 => ":",
            _ => ",",
        }
    }
}

fn begin(open: &mut Vec<Open>, object: bool, bracket: char, out: &mut String) {
    open.push(Open { object, values: 0 });
    out.push(bracket);
}

fn end(open: &mut Vec<Open>, bracket: char, out: &mut String) {
    open.pop();
    out.push(bracket);
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
