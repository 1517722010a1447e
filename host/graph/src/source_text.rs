//! The text of a job file, with its name.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

/// The text of a job file, and where it came from. Cheap to clone.
#[derive(Clone)]
pub struct SourceText {
    path: Arc<Path>,
    text: Arc<str>,
}

/// A place in a text: bytes from start to end.
pub type Span = std::ops::Range<usize>;

impl SourceText {
    /// The text that stood at `path`; text from elsewhere gets a name in place of a path.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Self {
        Self { path: path.into().into(), text: text.into() }
    }

    /// Where it came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte, both counted from 1, columns in characters.
    pub fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl fmt::Debug for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SourceText").field(&self.path).finish()
    }
}

/// Always whole lines, under the name of the file.
impl SourceCode for SourceText {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let text = self.text();
        if span.offset() + span.len() > text.len() {
            return Err(MietteError::OutOfBounds);
        }
        let start = text.floor_char_boundary(span.offset());
        let end = text.ceil_char_boundary(span.offset() + span.len());
        let lines = line_start(text, start, lines_before)..line_end(text, end, lines_after);
        let (line, column) = self.line_and_column(start);
        let first_line = line - 1 - text[lines.start..start].matches('\n').count();
        Ok(Box::new(MietteSpanContents::new_named(
            self.path.display().to_string(),
            &text.as_bytes()[lines.clone()],
            (lines.start, lines.len()).into(),
            first_line,
            column - 1,
            text[lines].lines().count(),
        )))
    }
}

fn line_start(text: &str, at: usize, before: usize) -> usize {
    text[..at].rmatch_indices('\n').nth(before).map_or(0, |(newline, _)| newline + 1)
}

fn line_end(text: &str, at: usize, after: usize) -> usize {
    text[at..].match_indices('\n').nth(after).map_or(text.len(), |(newline, _)| at + newline)
}

#[cfg(test)]
mod tests {
    use miette::SourceCode;

    use super::SourceText;

    #[test]
    fn lines_and_columns_start_at_one() {
        let source = SourceText::new("job.toml", "a\nüb\n");
        assert_eq!(source.line_and_column(0), (1, 1));
        assert_eq!(source.line_and_column(4), (2, 2), "a column is a character");
        assert_eq!(source.line_and_column(5), (2, 3));
        assert_eq!(source.line_and_column(99), (3, 1), "past the end is the end");
    }

    #[test]
    fn a_span_is_shown_in_its_lines() {
        let source = SourceText::new("job.toml", "one\ntwo 2\nthree\n");
        let read = |span: (usize, usize), context| {
            let contents = source.read_span(&span.into(), context, context).expect("within");
            let text = String::from_utf8_lossy(contents.data()).into_owned();
            (text, contents.line(), contents.column(), contents.line_count())
        };
        assert_eq!(read((8, 1), 0), ("two 2".to_owned(), 1, 4, 1));
        assert_eq!(read((8, 1), 1), ("one\ntwo 2\nthree".to_owned(), 0, 4, 3));
        assert_eq!(read((2, 4), 0), ("one\ntwo 2".to_owned(), 0, 2, 2));
        assert_eq!(read((16, 0), 0), (String::new(), 3, 0, 0), "behind the last line");
        assert!(source.read_span(&(16, 1).into(), 0, 0).is_err());
    }
}
