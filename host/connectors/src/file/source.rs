//! The `file` source.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use millstream_operator::{
    Boundedness, ConnectorError, OperatorContext, Source, SourceSnapshot, SplitEnumerator, SplitReader,
};
use millstream_types::Schema;
use serde_json::Value;

use super::{
    enumerator::{EnumeratorOptions, FileEnumerator},
    layout::Layout,
    listing::Listing,
    options::{FileSourceOptions, Format},
    parquet,
    reader::FileReader,
};
use crate::options::{OptionsError, parse};

/// Rows out of files: CSV, JSON lines or Parquet.
pub(crate) struct FileSource {
    listing: Listing,
    layout: Layout,
    split_size: Option<u64>,
    watch: Option<Duration>,
}

impl FileSource {
    pub(crate) fn new(options: &Value, schema: Option<Schema>, base: &Path) -> Result<Self, OptionsError> {
        let options: FileSourceOptions = parse("file", options)?;
        let listing = Listing::new(base, &options.path)?;
        let schema = match schema.filter(|schema| !schema.is_empty()) {
            Some(schema) => schema,
            None if options.format == Format::Parquet => parquet::schema_of_first(&listing)?,
            None => {
                let message = "text files do not tell the types of their columns: give `schema = { column = \"type\" }`";
                return Err(OptionsError::at("schema", message));
            }
        };
        if options.format == Format::Parquet && options.compression.is_some() {
            return Err(OptionsError::at(
                "compression",
                "Parquet files say themselves how they are compressed: leave `compression` out",
            ));
        }
        let layout = Layout { format: options.format, compression: options.compression, schema };
        let split_size = options.split_size.map(|size| size.0);
        Ok(Self { listing, layout, split_size, watch: options.watch.map(|time| time.0) })
    }
}

impl FileSource {
    fn enumerator_options(&self, parallelism: u32) -> EnumeratorOptions {
        EnumeratorOptions {
            listing: self.listing.clone(),
            layout: self.layout.clone(),
            split_size: self.split_size,
            parallelism,
            watch: self.watch,
        }
    }
}

impl Source for FileSource {
    fn outputs(&self) -> Vec<(String, Schema)> {
        vec![("out".to_owned(), self.layout.schema.clone())]
    }

    fn reads(&self) -> Option<PathBuf> {
        Some(self.listing.fixed_part())
    }

    fn boundedness(&self) -> Boundedness {
        if self.watch.is_some() { Boundedness::Unbounded } else { Boundedness::Bounded }
    }

    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>, ConnectorError> {
        let enumerator = FileEnumerator::new(self.enumerator_options(parallelism))?;
        if enumerator.is_finished() {
            return Err(self.listing.nothing_found());
        }
        Ok(Box::new(enumerator))
    }

    fn restore(
        &self,
        parallelism: u32,
        snapshot: &SourceSnapshot,
    ) -> Result<Box<dyn SplitEnumerator>, ConnectorError> {
        Ok(Box::new(FileEnumerator::restore(self.enumerator_options(parallelism), snapshot)?))
    }

    fn reader(&self, _ctx: &OperatorContext) -> Result<Box<dyn SplitReader>, ConnectorError> {
        Ok(Box::new(FileReader::new(self.layout.clone())))
    }
}
