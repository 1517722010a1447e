//! Restored state of an earlier version, which the module makes its own value by value before anybody reads it.

use millstream_operator::{FunctionError, StoredValues, UserFunction};
use millstream_state::{StateError, folded, join_columns, replace_rows, rows_of};
use millstream_types::{State, StateChunk, StateForm, StatePart};

use crate::Calls;

/// Values that are handed to the function at once.
const BATCH: usize = 8192;

/// State that cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrationError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Function(#[from] FunctionError),
}

/// The parts, with those whose version the function takes over as parts of the current one: of the states that it declares,
/// and of others that its operator keeps for it.
///
/// The function is closed again: what its instance has seen of state is not what will be restored.
pub(crate) async fn migrated(
    parts: Vec<StatePart>,
    others: &[State],
    function: &mut dyn UserFunction,
    calls: &mut Calls,
) -> Result<Vec<StatePart>, MigrationError> {
    let states = calls.ctx().states.clone();
    let mut made = Vec::with_capacity(parts.len());
    let mut called = false;
    for part in parts {
        let takes_over = |state: &&State| {
            state.name == part.name
                && part.form != StateForm::Store
                && part.version < state.version
                && state.migrates_from.contains(&part.version)
        };
        match states.iter().chain(others).find(takes_over) {
            Some(state) => {
                made.push(migrate_part(part, state, function, calls).await?);
                called = true;
            }
            None => made.push(part),
        }
    }
    if called {
        function.close().await?;
    }
    Ok(made)
}

async fn migrate_part(
    part: StatePart,
    state: &State,
    function: &mut dyn UserFunction,
    calls: &mut Calls,
) -> Result<StatePart, MigrationError> {
    // Nothing may build on what it was.
    let StatePart { name, form, version, columns, chunks, .. } = folded(part)?;
    let mut migrated = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let values = rows_of(form, &columns, &chunk.bytes)?;
        let mut batches = Vec::new();
        for start in (0..values.rows).step_by(BATCH) {
            let values = values.slice(start, BATCH.min(values.rows - start));
            let stored = StoredValues { version, columns: &columns, values: &values };
            let mut call = calls.begin();
            let result = function.migrate(state, &stored, &mut call).await;
            batches.push(calls.end(call, result)?);
        }
        let bytes = match join_columns(&batches) {
            Some(rows) => replace_rows(form, &columns, &chunk.bytes, &state.columns, &rows)?,
            None => chunk.bytes.clone(),
        };
        migrated.push(StateChunk { bytes, ..chunk });
    }
    let columns = state.columns.clone();
    Ok(StatePart { name, form, version: state.version, columns, base: None, chunks: migrated, files: None })
}

impl From<MigrationError> for millstream_operator::OperatorError {
    fn from(error: MigrationError) -> Self {
        match error {
            MigrationError::State(error) => error.into(),
            MigrationError::Function(error) => error.into(),
        }
    }
}
