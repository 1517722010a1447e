//! Parquet files, a row group a split.

use std::{collections::BTreeMap, fs::File, path::Path, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, types::TimestampMillisecondType};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType as ArrowType, Schema as ArrowSchema};
use millstream_operator::{BadRow, ConnectorError};
use millstream_types::{DataType, Field, Limits, Positions, RecordNumbers, RecordUnit, Schema};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
    },
    file::metadata::ParquetMetaData,
};

use super::{
    listing::Listing,
    rows::{self, Decoded, no_value, wrong_value},
    split::FileSplit,
    text_reader::Rows,
    value::{BadRows, TIMESTAMPS},
};
use crate::options::OptionsError;

/// A split for each row group of a file that has the columns of `schema`.
pub(crate) fn row_groups(path: &Path, schema: &Schema) -> Result<Vec<FileSplit>, ConnectorError> {
    let file = open(path)?;
    check_columns(path, file.schema(), schema)?;
    let mut row = 1;
    let groups = file.metadata().row_groups().iter().enumerate();
    let split = |(group, metadata): (usize, &parquet::file::metadata::RowGroupMetaData)| {
        let start = group as u64;
        let split = FileSplit { path: path.to_owned(), start, end: start + 1, line: row, skip: 0 };
        row += u64::try_from(metadata.num_rows()).unwrap_or_default();
        split
    };
    Ok(groups.map(split).collect())
}

/// The columns of the first file, for a source without a schema; those of types that are none of ours are left out.
pub(crate) fn schema_of_first(listing: &Listing) -> Result<Schema, OptionsError> {
    let failed = |e: ConnectorError| {
        OptionsError::at("path", format!("{e}; or give `schema = {{ column = \"type\" }}`"))
    };
    let files = listing.files().map_err(failed)?;
    let Some(first) = files.first() else {
        let message = format!("{}: no such file, from which to take the columns", listing.path().display());
        return Err(failed(ConnectorError::user(message)));
    };
    let file = open(first).map_err(failed)?;
    let field = |f: &Arc<arrow_schema::Field>| {
        let data_type = logical_type(f.data_type())?;
        Some(Field { name: f.name().clone(), data_type, nullable: f.is_nullable() })
    };
    Ok(Schema::new(file.schema().fields().iter().filter_map(field).collect::<Vec<_>>()))
}

/// Reads one row group.
pub(crate) struct ParquetReader {
    file: Arc<str>,
    schema: Schema,
    reader: ParquetRecordBatchReader,
    /// Number of the next row in its file.
    row: u64,
}

/// Refuses a split of a file that has been replaced since by one with fewer row groups or rows.
fn check_split(split: &FileSplit, file: &ParquetMetaData) -> Result<(), ConnectorError> {
    let rows =
        |group: usize| file.row_groups().get(group).map(|g| u64::try_from(g.num_rows()).unwrap_or_default());
    let found = usize::try_from(split.start).ok().and_then(rows);
    if found.is_some_and(|rows| rows >= split.skip) && split.end <= file.num_row_groups() as u64 {
        return Ok(());
    }
    let (path, start, groups) = (split.path.display(), split.start, file.num_row_groups());
    Err(ConnectorError::user(format!(
        "{path}: found {groups} row groups, expected row {} in row group {start}: the file has been replaced since it was found",
        split.skip
    )))
}

impl ParquetReader {
    pub(crate) fn open(split: &FileSplit, schema: &Schema) -> Result<Self, ConnectorError> {
        let builder = open(&split.path)?;
        check_columns(&split.path, builder.schema(), schema)?;
        check_split(split, builder.metadata())?;
        let roots = schema.fields().iter().filter_map(|f| builder.schema().index_of(&f.name).ok());
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let groups = (split.start..split.end).filter_map(|group| usize::try_from(group).ok()).collect();
        let builder =
            builder.with_projection(mask).with_row_groups(groups).with_batch_size(Limits::BATCH_ROWS);
        let reader = builder.with_offset(usize::try_from(split.skip).unwrap_or(usize::MAX)).build();
        let reader = reader.map_err(|e| not_readable(&split.path.display().to_string(), e))?;
        let file = Arc::from(split.path.display().to_string());
        Ok(Self { file, schema: schema.clone(), reader, row: split.line + split.skip })
    }

    /// The number of the next row in its file.
    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    /// The next rows; none at the end of the row group.
    pub(crate) fn next(&mut self) -> Result<Option<Rows>, ConnectorError> {
        let Some(found) = self.reader.next() else {
            return Ok(None);
        };
        let found = found.map_err(|e| not_readable(&format!("{}: from row {}", self.file, self.row), e))?;
        let first = self.row;
        self.row += found.num_rows() as u64;
        let mut bad = BadRows::new();
        let columns = self.schema.fields().iter().map(|field| self.column(&found, field, &mut bad));
        let columns = columns.collect::<Result<_, _>>()?;
        let mut decoded = Decoded::without_bad(found.num_rows(), columns, bad);
        let bad = std::mem::take(&mut decoded.bad);
        let batch = rows::batch(&self.schema, vec![decoded]).map_err(|e| not_readable(&self.file, e))?;
        let batch = batch.with_positions(Some(self.positions(first, found.num_rows(), &bad)));
        Ok(Some((batch, self.bad_rows(first, &found, bad))))
    }

    /// A column of the host's type.
    fn column(
        &self,
        found: &RecordBatch,
        field: &Field,
        bad: &mut BadRows,
    ) -> Result<ArrayRef, ConnectorError> {
        let failed = |e| not_readable(&format!("{}: column `{}`", self.file, field.name), e);
        let index = found.schema().index_of(&field.name).map_err(failed)?;
        let column = convert(&found.columns()[index], field.data_type).map_err(failed)?;
        if !field.nullable && column.null_count() > 0 {
            for row in (0..column.len()).filter(|row| column.is_null(*row)) {
                bad.entry(row).or_insert_with(|| no_value(field));
            }
        }
        if field.data_type == DataType::Timestamp {
            let times = column.as_primitive::<TimestampMillisecondType>();
            for (row, time) in times.iter().enumerate() {
                if let Some(time) = time.filter(|time| !TIMESTAMPS.contains(time)) {
                    bad.entry(row).or_insert_with(|| wrong_value(field, &time.to_string()));
                }
            }
        }
        Ok(column)
    }

    /// Where those of `rows` rows stand that are not bad.
    fn positions(&self, first: u64, rows: usize, bad: &BTreeMap<usize, String>) -> Positions {
        let numbers = if bad.is_empty() {
            RecordNumbers::Even { first, stride: 1, rows }
        } else {
            let good = (0..rows).filter(|row| !bad.contains_key(row));
            RecordNumbers::Each(good.map(|row| first + row as u64).collect())
        };
        Positions::read(self.file.clone(), RecordUnit::Row, numbers)
    }

    fn bad_rows(&self, first: u64, found: &RecordBatch, bad: BTreeMap<usize, String>) -> Vec<BadRow> {
        let bad_row = |(row, reason): (usize, String)| BadRow {
            position: format!("{}: row {}", self.file, first + row as u64),
            reason,
            text: rows::cut(&row_text(found, row)),
        };
        bad.into_iter().map(bad_row).collect()
    }
}

/// The same values in the host's type, which `check_columns` has found to hold them.
fn convert(column: &ArrayRef, wanted: DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    match (column.data_type(), wanted.to_arrow()) {
        (found, wanted) if *found == wanted => Ok(column.clone()),
        // A timestamp is the same number whatever its time zone; one without is UTC.
        (ArrowType::Timestamp(_, zone), ArrowType::Timestamp(unit, _)) => {
            let times = cast_with_options(column, &ArrowType::Timestamp(unit, zone.clone()), &options)?;
            Ok(Arc::new(times.as_primitive::<TimestampMillisecondType>().clone().with_timezone("UTC")))
        }
        (_, wanted) => cast_with_options(column, &wanted, &options),
    }
}

/// A row's values by name, for messages.
fn row_text(batch: &RecordBatch, row: usize) -> String {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let value = |(field, column): (&Arc<arrow_schema::Field>, &ArrayRef)| {
        let value = arrow_cast::display::array_value_to_string(column, row).unwrap_or_default();
        format!("{}: {value}", field.name())
    };
    columns.map(value).collect::<Vec<_>>().join(", ")
}

fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, ConnectorError> {
    let name = path.display();
    let file = File::open(path)
        .map_err(|e| ConnectorError::external(format!("{name}: cannot open the file: {e}"), e))?;
    ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|e| ConnectorError::user(format!("{name}: not a Parquet file: {e}")))
}

fn not_readable(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> ConnectorError {
    let mut found = ConnectorError::user(format!("{what}: the Parquet file cannot be read: {error}"));
    found.source = Some(Box::new(error));
    found
}

fn check_columns(path: &Path, found: &ArrowSchema, wanted: &Schema) -> Result<(), ConnectorError> {
    for field in wanted.fields() {
        let problem = match found.field_with_name(&field.name) {
            Err(_) => {
                let names: Vec<_> = found.fields().iter().map(|f| f.name().as_str()).collect();
                format!(
                    "no column `{}`: found {}; the schema expects {}",
                    field.name,
                    names.join(", "),
                    wanted.names()
                )
            }
            Ok(column) if logical_type(column.data_type()).is_some_and(|t| t.widens_to(field.data_type)) => {
                continue;
            }
            Ok(column) => {
                format!("column `{}`: found {}, expected {}", field.name, column.data_type(), field.data_type)
            }
        };
        return Err(ConnectorError::user(format!("{}: {problem}", path.display())));
    }
    Ok(())
}

/// What a column of a file is in the host.
fn logical_type(found: &ArrowType) -> Option<DataType> {
    Some(match found {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::Int32 | ArrowType::UInt8 | ArrowType::UInt16 => {
            DataType::Int32
        }
        ArrowType::Int64 | ArrowType::UInt32 => DataType::Int64,
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float32,
        ArrowType::Float64 => DataType::Float64,
        ArrowType::Timestamp(_, _) => DataType::Timestamp,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::Utf8,
        ArrowType::Binary
        | ArrowType::LargeBinary
        | ArrowType::BinaryView
        | ArrowType::FixedSizeBinary(_) => DataType::Binary,
        ArrowType::Dictionary(_, values) => return logical_type(values),
        _ => return None,
    })
}
