//! What a job file says of files: where they are and how they are written.

use std::path::Path;

use serde::{Deserialize, Deserializer};

use crate::options::{ByteSize, TextDuration};

/// Options of the `file` source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileSourceOptions {
    /// A file, a folder or a pattern such as `logs/*.csv`, from the job file's folder.
    pub(crate) path: String,
    /// How rows are written.
    pub(crate) format: Format,
    /// How the files are compressed; by their names' ends if it is not given.
    pub(crate) compression: Option<Compression>,
    /// Bytes that one reader reads of a file before it takes another piece.
    pub(crate) split_size: Option<ByteSize>,
    /// How often to look for new files; without it the source ends with the files that are there. A file is read once
    /// and as long as it is when it is found: it should be written elsewhere and moved here. One that changes later is
    /// not read again; that is said in the log.
    pub(crate) watch: Option<TextDuration>,
}

/// Options of the `file` sink.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileSinkOptions {
    /// A folder, from the job file's folder.
    pub(crate) path: String,
    /// How rows are written.
    pub(crate) format: Format,
    /// How text is compressed.
    pub(crate) compression: Option<Compression>,
    /// Bytes after which a part is finished and the next one begun.
    #[serde(default = "default_roll_size")]
    pub(crate) roll_size: ByteSize,
    /// What happens to parts of earlier runs.
    #[serde(default)]
    pub(crate) mode: SinkMode,
}

/// What a run does about the part files that an earlier one left in its folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SinkMode {
    /// They are removed, so that the folder holds one run's rows.
    #[default]
    Replace,
    /// They stay, and this run's parts come beside them.
    Append,
    /// The run fails.
    FailIfExists,
}

/// How rows are written in a file. In a job file a name, `"csv"`, or a table with the format's options,
/// `{ csv = { null = "NA" } }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Csv(CsvOptions),
    Jsonl,
    Parquet,
}

impl Format {
    /// The end of a part file's name.
    pub(crate) fn extension(&self) -> &'static str {
        match self {
            Format::Csv(_) => "csv",
            Format::Jsonl => "jsonl",
            Format::Parquet => "parquet",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormatName {
    Csv,
    Jsonl,
    Parquet,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormatTable {
    Csv(CsvOptions),
    Jsonl(NoOptions),
    Parquet(NoOptions),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::{Error, IntoDeserializer, MapAccess, Visitor, value};

        struct FormatVisitor;

        impl<'de> Visitor<'de> for FormatVisitor {
            type Value = Format;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"csv\", \"jsonl\", \"parquet\" or a table such as { csv = { null = \"NA\" } }")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Format, E> {
                Ok(match FormatName::deserialize(name.into_deserializer())? {
                    FormatName::Csv => Format::Csv(CsvOptions::default()),
                    FormatName::Jsonl => Format::Jsonl,
                    FormatName::Parquet => Format::Parquet,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Format, A::Error> {
                Ok(match FormatTable::deserialize(value::MapAccessDeserializer::new(table))? {
                    FormatTable::Csv(options) => Format::Csv(options),
                    FormatTable::Jsonl(NoOptions {}) => Format::Jsonl,
                    FormatTable::Parquet(NoOptions {}) => Format::Parquet,
                })
            }
        }

        deserializer.deserialize_any(FormatVisitor)
    }
}

/// Options of CSV.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct CsvOptions {
    /// Whether the first line names the columns. Without it the columns are those of the schema, in its order.
    pub(crate) header: bool,
    /// The byte between fields.
    #[serde(deserialize_with = "single_byte")]
    pub(crate) delimiter: u8,
    /// The byte around fields that hold a delimiter, a quote or a line break.
    #[serde(deserialize_with = "single_byte")]
    pub(crate) quote: u8,
    /// The text that stands for null; an empty field is then empty text, or empty bytes, and still no number. Without
    /// it an empty field is null where the column may be null, unless it is written as two quotes: that is empty text.
    /// The sink writes both as nothing then: set `null` to tell them apart.
    pub(crate) null: Option<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { header: true, delimiter: b',', quote: b'"', null: None }
    }
}

fn single_byte<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err(serde::de::Error::custom(format!("found {text:?}, expected one ASCII character"))),
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// By the end of the name.
    pub(crate) fn of(path: &Path) -> Self {
        match path.extension().and_then(|e| e.to_str()) {
            Some("gz" | "gzip") => Compression::Gzip,
            Some("zst" | "zstd") => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// What is appended to a part file's name.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
        }
    }
}

fn default_roll_size() -> ByteSize {
    ByteSize(128 << 20)
}
