//! A writer of JSON objects: all that a manifest needs, without a JSON crate in every module.

use std::fmt::Write;

/// An object being written.
pub(super) struct Json {
    text: String,
    empty: bool,
}

impl Json {
    /// Writes one object.
    pub(super) fn object(fill: impl FnOnce(&mut Json)) -> String {
        let mut json = Json { text: String::new(), empty: true };
        json.braces(fill);
        json.text
    }

    /// A member that is an object.
    pub(super) fn object_member(&mut self, key: &str, fill: impl FnOnce(&mut Json)) -> &mut Self {
        self.key(key);
        self.braces(fill);
        self
    }

    /// A member that is a list of objects.
    pub(super) fn list<T>(&mut self, key: &str, items: &[T], fill: impl Fn(&mut Json, &T)) -> &mut Self {
        self.key(key);
        self.text.push('[');
        for (at, item) in items.iter().enumerate() {
            self.comma(at > 0);
            self.braces(|json| fill(json, item));
        }
        self.text.push(']');
        self
    }

    /// A member that is a list of numbers.
    pub(super) fn numbers(&mut self, key: &str, items: impl Iterator<Item = u32>) -> &mut Self {
        self.key(key);
        let items: Vec<_> = items.map(|item| item.to_string()).collect();
        self.text.push('[');
        self.text.push_str(&items.join(","));
        self.text.push(']');
        self
    }

    /// A member that is a list of texts.
    pub(super) fn texts<'a>(&mut self, key: &str, items: impl Iterator<Item = &'a str>) -> &mut Self {
        self.key(key);
        self.text.push('[');
        for (at, item) in items.enumerate() {
            self.comma(at > 0);
            self.quoted(item);
        }
        self.text.push(']');
        self
    }

    /// A member that is a text.
    pub(super) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        self.quoted(value);
        self
    }

    /// A member that is a number.
    pub(super) fn number(&mut self, key: &str, value: u32) -> &mut Self {
        self.key(key);
        self.text.push_str(&value.to_string());
        self
    }

    /// A member that is true or false.
    pub(super) fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        self.key(key);
        self.text.push_str(if value { "true" } else { "false" });
        self
    }

    fn braces(&mut self, fill: impl FnOnce(&mut Json)) {
        let outer = std::mem::replace(&mut self.empty, true);
        self.text.push('{');
        fill(self);
        self.text.push('}');
        self.empty = outer;
    }

    fn key(&mut self, key: &str) {
        let first = std::mem::replace(&mut self.empty, false);
        self.comma(!first);
        self.quoted(key);
        self.text.push(':');
    }

    fn comma(&mut self, wanted: bool) {
        if wanted {
            self.text.push(',');
        }
    }

    fn quoted(&mut self, value: &str) {
        self.text.push('"');
        for character in value.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                control if control < ' ' => {
                    // Writing to a string cannot fail.
                    let _ = write!(self.text, "\\u{:04x}", u32::from(control));
                }
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_separated_and_quoted() {
        let json = Json::object(|it| {
            it.text("a", "x\"y\\\n\u{1}").number("b", 7).flag("c", false);
            it.object_member("d", |it| {
                it.texts("e", ["f", "g"].into_iter());
            });
            it.list("h", &[1, 2], |it, &number| {
                it.number("i", number);
            });
            it.list::<u32>("j", &[], |_, _| ());
        });
        let expected =
            r#"{"a":"x\"y\\\n\u0001","b":7,"c":false,"d":{"e":["f","g"]},"h":[{"i":1},{"i":2}],"j":[]}"#;
        assert_eq!(json, expected);
    }
}
