//! State of a subtask rather than of a key.

use std::collections::BTreeMap;

use millstream_types::Columns;

/// Named lists of items that a subtask keeps.
#[derive(Clone, Debug, Default)]
pub struct OperatorState {
    items: BTreeMap<String, Columns>,
}

impl OperatorState {
    /// The items under a name, none if nothing has been written.
    pub fn read(&self, name: &str) -> Option<&Columns> {
        self.items.get(name)
    }

    /// Puts items in the place of those that were there.
    pub fn replace(&mut self, name: &str, items: Columns) {
        self.items.insert(name.to_owned(), items);
    }
}
