//! `millstream state show`: what a snapshot has, as a table, as JSON lines, or in a Parquet file.

use std::{fs::File, path::Path, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, types::TimestampMillisecondType};
use arrow_schema::{ArrowError, Field, Schema};
use comfy_table::{Table, presets};
use miette::miette;
use millstream_snapshot::{OperatorMetadata, StateMetadata};
use millstream_state::{KEYED_STORE, show_part};
use millstream_storage::{JobStore, StoredSnapshot};
use millstream_task::StatePieces;
use millstream_types::{StateForm, StatePart};
use millstream_worker::stored_pieces;
use parquet::arrow::ArrowWriter;
use serde_json::{Map, Value, json};

use super::snapshots::{block_on, failed};
use crate::{
    args,
    exit::{Exit, Failure},
    printer::Printer,
    summary::count,
};

/// Shows all states of a snapshot, or the rows of some.
pub(crate) fn show(args: &args::StateShow, printer: &Printer) -> Result<Exit, Failure> {
    block_on(async {
        let snapshot = Arc::new(JobStore::open(&args.snapshot).await.map_err(failed)?);
        let Some(operator) = &args.operator else {
            let states = overview(&snapshot);
            printer.result(&states, || overview_table(&states));
            return Ok(Exit::Success);
        };
        let operator = find_operator(&snapshot, operator)?;
        let states = find_states(operator, args.state.as_deref())?;
        let format = if printer.json() { args::StateFormat::Jsonl } else { args.format };
        match format {
            args::StateFormat::Parquet => parquet(&snapshot, operator, &states, args).await?,
            args::StateFormat::Jsonl => jsonl(&snapshot, operator, &states, printer).await?,
            args::StateFormat::Table => table(&snapshot, operator, &states, args.limit, printer).await?,
        }
        Ok(Exit::Success)
    })
}

/// A state of an operator, in all its subtasks.
struct OneState<'a> {
    name: &'a str,
    form: StateForm,
    parts: Vec<Part<'a>>,
}

/// A state in one subtask.
#[derive(Clone, Copy)]
struct Part<'a> {
    state: &'a StateMetadata,
    /// The subtask's store, if it has one: what a state has that has no chunks is there.
    store: Option<&'a StateMetadata>,
}

impl OneState<'_> {
    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.state.bytes()).sum()
    }

    /// Whether its rows are in a store.
    fn is_stored(&self) -> bool {
        self.bytes() == 0 && self.parts.iter().any(|part| part.store.is_some())
    }
}

/// The states of an operator, each once.
fn states_of(operator: &OperatorMetadata) -> Vec<OneState<'_>> {
    let mut states: Vec<OneState<'_>> = Vec::new();
    let subtasks = operator.subtasks.iter().map(|subtask| &subtask.states[..]);
    for listed in subtasks.chain([&operator.shared[..]]) {
        for state in listed {
            // Keyed states share one; windows and sessions have their own.
            let is_its = |store: &&StateMetadata| {
                store.form == StateForm::Store && (store.name == KEYED_STORE || store.name == state.name)
            };
            let store = listed.iter().find(is_its);
            let part = Part { state, store };
            match states.iter_mut().find(|known| known.name == state.name && known.form == state.form) {
                Some(known) => known.parts.push(part),
                None => states.push(OneState { name: &state.name, form: state.form, parts: vec![part] }),
            }
        }
    }
    states
}

fn find_operator<'a>(snapshot: &'a StoredSnapshot, id: &str) -> Result<&'a OperatorMetadata, Failure> {
    let operators = &snapshot.metadata.operators;
    snapshot.metadata.operator(id).ok_or_else(|| {
        let known: Vec<_> = operators.iter().map(|operator| operator.id.as_str()).collect();
        Failure::invalid(miette!("the snapshot has no operator `{id}`; it has {}", known.join(", ")))
    })
}

fn find_states<'a>(operator: &'a OperatorMetadata, name: Option<&str>) -> Result<Vec<OneState<'a>>, Failure> {
    let all = states_of(operator);
    let known: Vec<_> = all.iter().map(|state| state.name).collect();
    let known = known.join(", ");
    // The store of windows has their name, and no rows but theirs.
    let is_it = |state: &OneState<'_>, name| {
        state.name == name && (state.form != StateForm::Store || name == KEYED_STORE)
    };
    let found: Vec<_> = all.into_iter().filter(|state| name.is_none_or(|name| is_it(state, name))).collect();
    match name {
        Some(name) if found.is_empty() => {
            Err(Failure::invalid(miette!("`{}` has no state `{name}`; it has {known}", operator.id)))
        }
        _ => Ok(found),
    }
}

/// The rows of a state in one subtask, as batches.
struct Rows<'a> {
    snapshot: &'a StoredSnapshot,
    operator: &'a OperatorMetadata,
    state: &'a StateMetadata,
    pieces: Box<dyn StatePieces>,
    begun: bool,
}

impl<'a> Rows<'a> {
    async fn of(
        snapshot: &'a Arc<StoredSnapshot>,
        operator: &'a OperatorMetadata,
        part: &Part<'a>,
    ) -> Result<Self, Failure> {
        let pieces = stored_pieces(snapshot, operator, part.state, part.store).await;
        let pieces = pieces.map_err(|e| Failure::environment(miette!("{}", in_full(&e))))?;
        Ok(Self { snapshot, operator, state: part.state, pieces, begun: false })
    }

    /// The next ones; none if these were all, or where only an operator or a connector can read them.
    async fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        if self.state.form == StateForm::Store {
            return Ok(None);
        }
        let (name, operator) = (self.snapshot.name(), &self.operator.id);
        let failed = |error: &dyn std::fmt::Display| {
            Failure::environment(miette!("{name}: `{}` of `{operator}`: {error}", self.state.name))
        };
        let next = self.pieces.next().await.map_err(|error| failed(&in_full(&*error)))?;
        // Where there is nothing there are columns all the same.
        let empty = || StatePart {
            columns: self.state.columns.clone(),
            ..StatePart::plain(&self.state.name, self.state.form, Vec::new())
        };
        let begun = std::mem::replace(&mut self.begun, true);
        let Some(piece) = next.or_else(|| (!begun).then(empty)) else { return Ok(None) };
        show_part(&piece, &self.operator.key).map_err(|error| failed(&error))
    }
}

/// An error with all that is behind it, on a line.
fn in_full(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

async fn table(
    snapshot: &Arc<StoredSnapshot>,
    operator: &OperatorMetadata,
    states: &[OneState<'_>],
    limit: usize,
    printer: &Printer,
) -> Result<(), Failure> {
    for state in states {
        let mut shown = Table::new();
        shown.load_style(presets::NOTHING);
        let (mut total, mut readable) = (0, false);
        for part in &state.parts {
            let mut rows = Rows::of(snapshot, operator, part).await?;
            while let Some(batch) = rows.next().await? {
                let names: Vec<_> =
                    batch.schema().fields().iter().map(|field| field.name().clone()).collect();
                let wanted = limit.saturating_sub(total).min(batch.num_rows());
                total += batch.num_rows();
                for row in json_rows(&batch.slice(0, wanted))? {
                    shown.add_row(names.iter().map(|name| cell(row.get(name))));
                }
                shown.set_header(names);
                readable = true;
            }
        }
        let (name, form) = (state.name, state.form.name());
        let bytes = count(state.bytes());
        match readable {
            _ if state.is_stored() => {
                printer.data(&format!("{name} ({form}): {} rows, in the store", count(total as u64)));
            }
            true => printer.data(&format!("{name} ({form}): {} rows, {bytes} bytes", count(total as u64))),
            false => printer.data(&format!("{name} ({form}): {bytes} bytes that the operator reads itself")),
        }
        if total > 0 {
            printer.data(&shown.trim_fmt());
        }
        if total > limit {
            printer.data(&format!("... and {} more: see --limit", count((total - limit) as u64)));
        }
    }
    Ok(())
}

async fn jsonl(
    snapshot: &Arc<StoredSnapshot>,
    operator: &OperatorMetadata,
    states: &[OneState<'_>],
    printer: &Printer,
) -> Result<(), Failure> {
    for state in states {
        for part in &state.parts {
            let mut rows = Rows::of(snapshot, operator, part).await?;
            while let Some(batch) = rows.next().await? {
                for row in json_rows(&batch)? {
                    let line = match states.len() {
                        1 => Value::Object(row),
                        _ => json!({ "state": state.name, "row": row }),
                    };
                    printer.data(&line.to_string());
                }
            }
        }
    }
    Ok(())
}

async fn parquet(
    snapshot: &Arc<StoredSnapshot>,
    operator: &OperatorMetadata,
    states: &[OneState<'_>],
    args: &args::StateShow,
) -> Result<(), Failure> {
    let Some(path) = &args.output else {
        return Err(Failure::invalid(miette!("Parquet goes into a file: name it with `--output FILE`")));
    };
    let [state] = states else {
        let names: Vec<_> = states.iter().map(|state| state.name).collect();
        let (operator, names) = (&operator.id, names.join(", "));
        return Err(Failure::invalid(miette!(
            "a Parquet file has one state: name one of `{operator}`: {names}"
        )));
    };
    let mut writer: Option<ArrowWriter<File>> = None;
    for part in &state.parts {
        let mut rows = Rows::of(snapshot, operator, part).await?;
        while let Some(batch) = rows.next().await? {
            let open = match writer.take() {
                Some(writer) => writer,
                None => {
                    let file = File::create(path).map_err(|e| not_written(path, e))?;
                    ArrowWriter::try_new(file, batch.schema(), None).map_err(|e| not_written(path, e))?
                }
            };
            let open = writer.insert(open);
            open.write(&batch).map_err(|e| not_written(path, e))?;
        }
    }
    match writer {
        Some(writer) => writer.close().map(drop).map_err(|e| not_written(path, e)),
        None => {
            Err(Failure::invalid(miette!("only the operator can read `{}` of `{}`", state.name, operator.id)))
        }
    }
}

fn not_written(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::environment(miette!("{}: cannot be written: {error}", path.display()))
}

/// Rows as documents, columns that are null included.
fn json_rows(batch: &RecordBatch) -> Result<Vec<Map<String, Value>>, Failure> {
    let mut bytes = Vec::new();
    let builder = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = builder.build::<_, arrow_json::writer::JsonArray>(&mut bytes);
    let written = by_offset(batch).and_then(|batch| writer.write(&batch)).and_then(|()| writer.finish());
    let failed = |e: &dyn std::fmt::Display| Failure::environment(miette!("rows cannot be shown: {e}"));
    written.map_err(|e| failed(&e))?;
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&bytes).map_err(|e| failed(&e))
}

/// The rows with time zones as the writer of JSON knows them: it has no names of them, and ours are all UTC.
fn by_offset(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let column = |(field, array): (&Arc<Field>, &ArrayRef)| -> (Arc<Field>, ArrayRef) {
        match array.as_primitive_opt::<TimestampMillisecondType>() {
            None => (field.clone(), array.clone()),
            Some(times) => {
                let times = times.clone().with_timezone("+00:00");
                let data_type = times.data_type().clone();
                (Arc::new(Field::new(field.name(), data_type, true)), Arc::new(times))
            }
        }
    };
    let (fields, columns): (Vec<_>, Vec<_>) =
        batch.schema().fields().iter().zip(batch.columns()).map(column).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// Every state of a snapshot, in short.
fn overview(snapshot: &StoredSnapshot) -> Vec<Value> {
    let of = |operator: &'_ OperatorMetadata| {
        let key: Vec<_> = operator.key.iter().map(|c| format!("{} {}", c.name, c.data_type)).collect();
        let state = |state: OneState<'_>| {
            let columns = state.parts.first().map(|part| &part.state.columns[..]).unwrap_or_default();
            let column = |c: &millstream_types::Column| {
                format!("{} {}{}", c.name, c.data_type, if c.nullable { "?" } else { "" })
            };
            json!({
                "operator": operator.id,
                "state": state.name,
                "form": state.form.name(),
                "key": key.join(", "),
                "columns": columns.iter().map(column).collect::<Vec<_>>().join(", "),
                "version": state.parts.first().map(|part| part.state.version),
                "subtasks": state.parts.len(),
                "bytes": state.bytes(),
            })
        };
        states_of(operator).into_iter().map(state).collect::<Vec<_>>()
    };
    snapshot.metadata.operators.iter().flat_map(of).collect()
}

fn overview_table(states: &[Value]) -> String {
    let columns = ["operator", "state", "form", "key", "columns", "version", "subtasks", "bytes"];
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns);
    for state in states {
        table.add_row(columns.map(|column| cell(state.get(column))));
    }
    table.trim_fmt()
}
