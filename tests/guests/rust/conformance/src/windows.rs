//! Aggregate and window functions that show what they were given.

use millstream::{Function, Input, Output, State, Window};

/// A row of text.
#[derive(Input, Clone)]
pub struct Text<'a> {
    pub text: &'a str,
}

/// An accumulator with text and nulls.
#[derive(State, Default)]
pub struct Gathered {
    rows: i64,
    smallest: Option<String>,
    all: String,
}

/// What a group came to.
#[derive(Output, Debug, PartialEq)]
pub struct GroupShown<'a> {
    pub group: &'a str,
    pub start: i64,
    pub end: i64,
    pub rows: i64,
    pub smallest: Option<String>,
    pub bytes: i64,
}

/// Gathers text.
#[derive(Function)]
pub struct Joined {}

/// Number of rows, smallest text and number of bytes of a group.
#[millstream::aggregate]
impl Joined {
    fn accumulate(&self, gathered: &mut Gathered, row: Text<'_>) {
        gathered.rows += 1;
        gathered.all.push_str(row.text);
        if gathered.smallest.as_deref().is_none_or(|smallest| row.text < smallest) {
            gathered.smallest = Some(row.text.to_owned());
        }
    }

    fn merge(&self, into: &mut Gathered, other: Gathered) {
        into.rows += other.rows;
        into.all.push_str(&other.all);
        into.smallest = [into.smallest.take(), other.smallest].into_iter().flatten().min();
    }

    fn finish<'a>(&self, gathered: &Gathered, group: &'a str, window: Window) -> GroupShown<'a> {
        GroupShown {
            group,
            start: window.start,
            end: window.end,
            rows: gathered.rows,
            smallest: gathered.smallest.clone(),
            bytes: gathered.all.len() as i64,
        }
    }
}

/// A window's rows in one text.
#[derive(Output, Debug, PartialEq)]
pub struct Contents {
    pub contents: String,
}

/// Key, window and rows, as text.
#[millstream::window]
pub fn contents(key: &str, window: Window, rows: &[Text<'_>]) -> Contents {
    let mut rows: Vec<_> = rows.iter().map(|row| row.text).collect();
    rows.sort_unstable();
    Contents { contents: format!("{key} [{}, {}): {}", window.start, window.end, rows.join(" ")) }
}

/// One row for each row of a window over the whole stream that has more than one.
#[millstream::window(carry = "replace")]
pub fn whole(_key: (), _window: Window, rows: &[Text<'_>]) -> Vec<Contents> {
    let several = rows.len() > 1;
    rows.iter().filter(|_| several).map(|row| Contents { contents: row.text.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    const ROWS: [(&str, Text<'static>); 3] =
        [("a", Text { text: "yz" }), ("b", Text { text: "x" }), ("a", Text { text: "w" })];

    #[test]
    fn groups_are_gathered_and_merged() {
        for parts in [1, 2, 3] {
            let results = testing::aggregate::<Joined>().window(10, 20).merged_from(parts).run(ROWS);
            let shown = |group, rows, smallest: &str, bytes| GroupShown {
                group,
                start: 10,
                end: 20,
                rows,
                smallest: Some(smallest.to_owned()),
                bytes,
            };
            assert_eq!(results.rows::<GroupShown<'_>>(), [shown("a", 2, "w", 3), shown("b", 1, "x", 1)]);
        }
    }

    #[test]
    fn windows_have_their_rows() {
        let results = testing::window::<contents>().window(10, 20).run(ROWS);
        let rows = results.rows::<Contents>();
        assert_eq!(rows[0].contents, "a [10, 20): w yz");
        assert_eq!(rows[1].contents, "b [10, 20): x");
        let whole = testing::window::<whole>().run(ROWS.map(|(_, row)| ((), row)));
        assert_eq!(whole.origins(), [Some(0), Some(0), Some(0)]);
    }
}
