//! JSON text to the tree. `serde_json` checks the text; a walk over what is known to be valid then finds the places.

use super::{Entry, Node, Table, Value, toml::string};
use crate::{
    problem::{Problem, Problems},
    source_text::Span,
};

/// Reads a document. What is wrong with the syntax goes to `problems`; the rest of the text is then not looked at.
pub(crate) fn parse_json(
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
    problems: &Problems,
) -> Option<Table> {
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        let span = span_of(text, error.line(), error.column());
        problems.push(Problem::error(format!("not valid JSON: {error}")).at(&span, "here"));
        return None;
    }
    let mut walk = Walk { text, at: 0, variables, problems };
    let node = walk.node();
    match node.value {
        Value::Table(table) => Some(table),
        other => {
            let message = format!("expected an object with the tables of a job, found {}", other.kind());
            problems.push(Problem::error(message).at(&node.span, "here"));
            None
        }
    }
}

/// A position in a text that is valid JSON, nested no deeper than `serde_json` allows.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    variables: &'a dyn Fn(&str) -> Option<String>,
    problems: &'a Problems,
}

impl Walk<'_> {
    fn node(&mut self) -> Node {
        self.skip_space();
        let start = self.at;
        let value = match self.peek() {
            b'{' => Value::Table(self.table()),
            b'[' => Value::Array(self.array()),
            b'"' => {
                let (text, span) = self.string();
                string(&text, self.variables, &span, self.problems)
            }
            _ => self.scalar(),
        };
        Node { value, span: start..self.at }
    }

    fn table(&mut self) -> Table {
        let mut table = Table::default();
        while self.next_item(b'}') {
            let (key, key_span) = self.string();
            self.skip_space();
            self.at += 1;
            if table.entry(&key).is_some() {
                self.problems
                    .push(Problem::error(format!("the key `{key}` is there twice")).at(&key_span, "again"));
            }
            let node = self.node();
            table.entries.push(Entry { key, key_span, node });
        }
        table
    }

    fn array(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        while self.next_item(b']') {
            nodes.push(self.node());
        }
        nodes
    }

    /// Steps over what opens, separates or closes items; whether another item follows.
    fn next_item(&mut self, close: u8) -> bool {
        self.skip_space();
        if self.peek() != close {
            self.at += 1;
            self.skip_space();
        }
        let more = self.peek() != close;
        self.at += usize::from(!more);
        more
    }

    fn string(&mut self) -> (String, Span) {
        let start = self.at;
        self.at += 1;
        while self.peek() != b'"' {
            self.at += if self.peek() == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let text = serde_json::from_str(&self.text[start..self.at]).unwrap_or_default();
        (text, start..self.at)
    }

    fn scalar(&mut self) -> Value {
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.find(|c: char| c.is_ascii_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
        self.at += length;
        let span = start..self.at;
        match &self.text[span.clone()] {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            "null" => {
                self.problems
                    .push(Problem::error("null means nothing in a job: leave the key out").at(&span, "here"));
                Value::Broken
            }
            number => match number.parse() {
                Ok(integer) => Value::Integer(integer),
                Err(_) => Value::Float(number.parse().unwrap_or_default()),
            },
        }
    }

    fn skip_space(&mut self) {
        while self.peek().is_ascii_whitespace() {
            self.at += 1;
        }
    }

    /// The byte here; past the end, which a valid text never asks for inside a value, something that ends everything.
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(b'"')
    }
}

fn span_of(text: &str, line: usize, column: usize) -> Span {
    let line_start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let offset = (line_start + column.saturating_sub(1)).min(text.len());
    offset..offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Option<Table>, Vec<Problem>) {
        let problems = Problems::default();
        let table = parse_json(text, &|_| Some("x".to_owned()), &problems);
        (table, problems.into_sorted().0)
    }

    #[test]
    fn every_value_has_its_place() {
        let text = " {\"a\" : [1, -2.5e0 ,true], \"b\": {\"c\\n\": \"${V}y\\\"\"} , \"d\":[ ],\"e\":{}}\n";
        let (table, problems) = parse(text);
        let table = table.expect("valid");
        assert_eq!(problems, []);
        let Value::Array(items) = &table.entries[0].node.value else { panic!("array") };
        let shown: Vec<_> = items.iter().map(|n| (&text[n.span.clone()], n.value.clone())).collect();
        let expected =
            [("1", Value::Integer(1)), ("-2.5e0", Value::Float(-2.5)), ("true", Value::Boolean(true))];
        assert_eq!(shown, expected);
        let inner = table.entry_at("b.c\n").expect("there");
        assert_eq!(&text[inner.key_span.clone()], "\"c\\n\"");
        let Value::String(found) = &inner.node.value else { panic!("string") };
        assert_eq!((found.text.as_str(), found.substituted), ("xy\"", true));
        assert_eq!(&text[table.entries[1].node.span.clone()], "{\"c\\n\": \"${V}y\\\"\"}");
        let as_json = serde_json::Value::Object(table.to_options());
        let replaced = text.replace("${V}", "x");
        assert_eq!(as_json, serde_json::from_str::<serde_json::Value>(&replaced).expect("valid"));
    }

    #[test]
    fn what_is_refused() {
        let refused = |text: &str| {
            parse(text).1.into_iter().map(|p| (p.message, p.labels[0].0.clone())).collect::<Vec<_>>()
        };
        assert_eq!(refused("{\"a\":1,\"a\":2}"), [("the key `a` is there twice".to_owned(), 7..10)]);
        assert_eq!(refused("{\"a\":null}")[0].1, 5..9);
        assert_eq!(refused("[]")[0].0, "expected an object with the tables of a job, found an array");
        let (message, span) = &refused("{\"a\":\n  oops}")[0];
        assert!(message.starts_with("not valid JSON: expected value"), "{message}");
        assert_eq!(*span, 8..8);
        assert_eq!(refused(&"[".repeat(100_000)).len(), 1, "nesting is bounded");
    }
}
