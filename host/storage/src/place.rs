//! How a place for snapshots is named.

use std::{fmt, path::Path};

use crate::StorageError;

/// A place, as its name has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// A folder of this machine: `file:PATH`, `file://PATH` or a plain path.
    Folder(&'a Path),
    /// `s3://BUCKET/PREFIX`
    S3 { bucket: &'a str, prefix: &'a str },
}

impl<'a> Place<'a> {
    /// Reads a name.
    pub(crate) fn parse(location: &'a str) -> Result<Self, StorageError> {
        let refused =
            |problem: String| Err(StorageError::Location { location: location.to_owned(), problem });
        let path = match location.split_once(':') {
            Some(("file", path)) => path.strip_prefix("//").unwrap_or(path),
            Some(("s3", place)) => return Self::s3(place).map_or_else(|| refused(S3_FORM.to_owned()), Ok),
            // A letter alone is a drive.
            Some((scheme, _)) if scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                return refused(format!(
                    "there is no storage `{scheme}:` in this version; expected `s3://BUCKET/PREFIX`, `file:PATH` or a path"
                ));
            }
            _ => location,
        };
        match path {
            "" => refused("expected the path of a folder".to_owned()),
            path => Ok(Self::Folder(Path::new(path))),
        }
    }

    fn s3(place: &'a str) -> Option<Self> {
        let (bucket, prefix) = place.strip_prefix("//")?.split_once('/')?;
        let prefix = prefix.trim_end_matches('/');
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        let is_place = !bucket.is_empty() && prefix.split('/').all(is_plain);
        is_place.then_some(Self::S3 { bucket, prefix })
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

const S3_FORM: &str =
    "expected `s3://BUCKET/PREFIX`, with a prefix of names, none of them empty, `.` or `..`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_places() {
        let folder = |name| Place::parse(name).ok();
        assert_eq!(folder("a/b"), Some(Place::Folder(Path::new("a/b"))));
        assert_eq!(folder("file:a"), Some(Place::Folder(Path::new("a"))));
        assert_eq!(folder("file:///a"), Some(Place::Folder(Path::new("/a"))));
        assert_eq!(folder("c:/a"), Some(Place::Folder(Path::new("c:/a"))));
        assert_eq!(folder("s3://b/c/d/"), Some(Place::S3 { bucket: "b", prefix: "c/d" }));
        for refused in
            ["", "file:", "gs://b/c", "s3:b/c", "s3://", "s3://b", "s3://b/", "s3:///c", "s3://b/../c"]
        {
            assert!(Place::parse(refused).is_err(), "{refused}");
        }
    }
}
