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

/// The same as `str` does, with the name that miette shows above the lines.
impl SourceCode for SourceText {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let lines = self.text.read_span(span, lines_before, lines_after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.path.display().to_string(),
            lines.data(),
            *lines.span(),
            lines.line(),
            lines.column(),
            lines.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::SourceText;

    #[test]
    fn lines_and_columns_start_at_one() {
        let source = SourceText::new("job.toml", "a\nüb\n");
        assert_eq!(source.line_and_column(0), (1, 1));
        assert_eq!(source.line_and_column(4), (2, 2), "a column is a character");
        assert_eq!(source.line_and_column(5), (2, 3));
        assert_eq!(source.line_and_column(99), (3, 1), "past the end is the end");
    }
}
