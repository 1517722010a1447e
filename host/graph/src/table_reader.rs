//! Typed reading of one table of a job file. Every key that is asked for counts as known; whatever else the table has
//! is unknown, and an error names the known key that was perhaps meant. A value that cannot be used is reported and
//! read as if it were not there, so that one run reports all that is wrong.

use std::{str::FromStr, time::Duration};

use crate::{
    Options,
    document::{Entry, Node, Spanned, Table, Text, Value},
    nearest::suggestion,
    problem::{Problem, Problems},
    source_text::Span,
    units::{parse_bytes, parse_duration},
};

/// A table with what has been asked of it.
pub(crate) struct TableReader<'a> {
    /// How messages call the table, such as `[operator.delays]`.
    name: String,
    /// Where it starts, for what it lacks.
    pub(crate) span: Span,
    table: &'a Table,
    known: Vec<&'static str>,
    pub(crate) problems: &'a Problems,
}

/// The words that a key may have, each with what it stands for.
pub(crate) type Choices<T> = [(&'static str, T)];

impl<'a> TableReader<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        span: &Span,
        table: &'a Table,
        problems: &'a Problems,
    ) -> Self {
        Self { name: name.into(), span: span.clone(), table, known: Vec::new(), problems }
    }

    /// A reader of the table that an entry has to be.
    pub(crate) fn of_entry(
        name: impl Into<String>,
        entry: &'a Entry,
        problems: &'a Problems,
    ) -> Option<Self> {
        match &entry.node.value {
            Value::Table(table) => Some(Self::new(name, &entry.key_span, table, problems)),
            Value::Broken => None,
            other => {
                let message = format!("{} has to be a table, found {}", name.into(), other.kind());
                problems.push(Problem::error(message).at(&entry.node.span, "here"));
                None
            }
        }
    }

    /// How messages call the table.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What stands at a key, whatever it is.
    pub(crate) fn entry(&mut self, key: &'static str) -> Option<&'a Entry> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.entry(key)
    }

    pub(crate) fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.entry(key).map(|e| &e.node)
    }

    /// Reports that a key is missing.
    pub(crate) fn missing(&self, key: &str, help: impl Into<String>) {
        let message = format!("{} needs the key `{key}`", self.name);
        self.problems.push(Problem::error(message).at(&self.span, format!("no `{key}` here")).help(help));
    }

    pub(crate) fn string(&mut self, key: &'static str) -> Option<Spanned<String>> {
        let node = self.node(key)?;
        self.text(key, node, "a string").map(|t| Spanned::new(t.text.clone(), &node.span))
    }

    pub(crate) fn boolean(&mut self, key: &'static str) -> Option<Spanned<bool>> {
        let node = self.node(key)?;
        match &node.value {
            Value::Boolean(boolean) => Some(Spanned::new(*boolean, &node.span)),
            _ => self.parse_variable(key, node, "true or false"),
        }
    }

    /// A whole number within bounds, which are part of the message.
    pub(crate) fn integer(&mut self, key: &'static str, min: i64, max: i64) -> Option<Spanned<i64>> {
        let expected = match max {
            i64::MAX => format!("an integer of at least {min}"),
            _ => format!("an integer from {min} to {max}"),
        };
        let node = self.node(key)?;
        let number = match &node.value {
            Value::Integer(number) => Spanned::new(*number, &node.span),
            _ => self.parse_variable::<i64>(key, node, &expected)?,
        };
        if !(min..=max).contains(&number.value) {
            let message = format!("`{key}` of {} is {}: expected {expected}", self.name, number.value);
            self.problems.push(Problem::error(message).at(&node.span, "out of range"));
            return None;
        }
        Some(number)
    }

    pub(crate) fn duration(&mut self, key: &'static str) -> Option<Spanned<Duration>> {
        self.parsed(key, "a span of time such as \"10s\"", parse_duration)
    }

    /// A span of time of at least a millisecond.
    pub(crate) fn positive_duration(&mut self, key: &'static str) -> Option<Spanned<Duration>> {
        let duration = self.duration(key)?;
        if duration.value.is_zero() {
            let message = format!("`{key}` of {} is zero: expected at least 1ms", self.name);
            self.problems.push(Problem::error(message).at(&duration.span, "too short"));
            return None;
        }
        Some(duration)
    }

    /// An amount of memory of at least so many KiB.
    pub(crate) fn bytes(&mut self, key: &'static str, least_kib: u64) -> Option<Spanned<u64>> {
        let bytes = self.parsed(key, "an amount of memory such as \"64MiB\"", parse_bytes)?;
        if bytes.value < least_kib << 10 {
            let message =
                format!("`{key}` of {} is {}B: expected at least {least_kib}KiB", self.name, bytes.value);
            self.problems.push(Problem::error(message).at(&bytes.span, "too little"));
            return None;
        }
        Some(bytes)
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(&mut self, key: &'static str, choices: &Choices<T>) -> Option<Spanned<T>> {
        let word = self.string(key)?;
        let found = choices.iter().find(|(name, _)| *name == word.value);
        if found.is_none() {
            let names: Vec<_> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            let message =
                format!("`{key}` of {} is \"{}\": expected {}", self.name, word.value, names.join(" or "));
            self.problems.push(Problem::error(message).at(&word.span, "not one of them"));
        }
        found.map(|(_, value)| Spanned::new(*value, &word.span))
    }

    /// A string or some strings.
    pub(crate) fn strings(&mut self, key: &'static str) -> Option<Spanned<Vec<Spanned<String>>>> {
        let node = self.node(key)?;
        Some(Spanned::new(self.strings_of(key, node), &node.span))
    }

    /// The strings that a node is: one by itself or an array of them.
    pub(crate) fn strings_of(&self, key: &str, node: &'a Node) -> Vec<Spanned<String>> {
        let one = std::slice::from_ref(node);
        let nodes = if let Value::Array(nodes) = &node.value { nodes } else { one };
        let text = |n| {
            self.text(key, n, "a string or an array of strings")
                .map(|t| Spanned::new(t.text.clone(), &n.span))
        };
        nodes.iter().filter_map(text).collect()
    }

    /// A reader of a table within this one.
    pub(crate) fn table(&mut self, key: &'static str) -> Option<TableReader<'a>> {
        let name = format!("`{key}` of {}", self.name);
        TableReader::of_entry(name, self.entry(key)?, self.problems)
    }

    /// The entries of a table within this one, whose keys are free.
    pub(crate) fn free_table(&mut self, key: &'static str) -> Option<&'a [Entry]> {
        self.table(key).map(|reader| reader.table.entries.as_slice())
    }

    /// A key of a later version: refused with a message that says so.
    pub(crate) fn not_available(&mut self, key: &'static str, message: &str) {
        if let Some(entry) = self.entry(key) {
            self.problems.push(Problem::error(message).at(&entry.key_span, "not available"));
        }
    }

    /// Reports every key that nobody asked for.
    pub(crate) fn finish(self) {
        for entry in self.unknown() {
            let message = format!("unknown key `{}` in {}", entry.key, self.name);
            let help = suggestion(&entry.key, "known keys", self.known.iter().copied());
            self.problems
                .push(Problem::error(message).at(&entry.key_span, "not known here").maybe_help(help));
        }
    }

    /// The entries that nobody asked for, for whoever gives them a meaning, with the keys that have been asked for.
    pub(crate) fn rest(self) -> (Options, Table, Vec<&'static str>) {
        let rest = Table { entries: self.unknown().cloned().collect() };
        (rest.to_options(), rest, self.known)
    }

    fn unknown(&self) -> impl Iterator<Item = &'a Entry> {
        self.table.entries.iter().filter(|e| !self.known.contains(&e.key.as_str()))
    }

    /// Reports that a key's value is of the wrong type.
    pub(crate) fn wrong_type(&self, key: &str, node: &Node, expected: &str) {
        if node.value == Value::Broken {
            return;
        }
        let message = format!("`{key}` of {} has to be {expected}, found {}", self.name, node.value.kind());
        self.problems.push(Problem::error(message).at(&node.span, format!("this is {}", node.value.kind())));
    }

    fn text(&self, key: &str, node: &'a Node, expected: &str) -> Option<&'a Text> {
        match &node.value {
            Value::String(text) => Some(text),
            _ => {
                self.wrong_type(key, node, expected);
                None
            }
        }
    }

    /// Text that stands for something else.
    pub(crate) fn parsed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Option<Spanned<T>> {
        let node = self.node(key)?;
        let text = self.text(key, node, expected)?;
        match parse(&text.text) {
            Ok(value) => Some(Spanned::new(value, &node.span)),
            Err(message) => {
                let message = format!("`{key}` of {}: {message}", self.name);
                self.problems.push(Problem::error(message).at(&node.span, "cannot be read"));
                None
            }
        }
    }

    /// Variables are text, so text in which one stood is read as what is expected.
    fn parse_variable<T: FromStr>(&self, key: &str, node: &Node, expected: &str) -> Option<Spanned<T>> {
        if let Value::String(Text { text, substituted: true }) = &node.value
            && let Ok(value) = text.trim().parse()
        {
            return Some(Spanned::new(value, &node.span));
        }
        self.wrong_type(key, node, expected);
        None
    }
}
