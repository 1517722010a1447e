//! The distinct keys of a call.

/// What a table says of the rows of a call: which of them have the same key, and where that key's state is.
///
/// Groups are numbered in the order in which their keys first appear. One grouping can hold the groups of several
/// tables, one after the other, as a batch whose rows fall into several windows has them.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// The group of each row; [`Grouping::NONE`] for rows that have not been resolved.
    pub group_of_row: Vec<u32>,
    /// The slot of each group in its table.
    pub slot_of_group: Vec<u32>,
    /// The first row of each group.
    pub first_row_of_group: Vec<u32>,
    /// The groups whose key was not in its table before, ascending.
    pub created: Vec<u32>,
}

impl Grouping {
    /// The group of a row that belongs to none.
    pub const NONE: u32 = u32::MAX;

    /// Forgets all groups and makes room for the rows of the next call; keeps its memory.
    pub fn start(&mut self, rows: usize) {
        self.group_of_row.clear();
        self.group_of_row.resize(rows, Self::NONE);
        self.slot_of_group.clear();
        self.first_row_of_group.clear();
        self.created.clear();
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.slot_of_group.len()
    }

    /// The slots of the groups whose key was not in its table before.
    pub(crate) fn created_slots(&self) -> Vec<u32> {
        self.created.iter().map(|&group| self.slot_of_group[group as usize]).collect()
    }

    /// The groups whose key was in its table before, ascending.
    pub(crate) fn known(&self) -> impl Iterator<Item = usize> {
        let mut created = self.created.iter().map(|&group| group as usize).peekable();
        (0..self.groups()).filter(move |group| created.next_if_eq(group).is_none())
    }
}
