//! What the operators of a plan keep: the other side of what a snapshot has.

use millstream_graph::{FunctionNode, LogicalNode, NodeBody, Plan, Trigger, WindowAssigner};
use millstream_operators::kept::{CALLS, CLOCK, COUNTS, PREPARED, WATERMARK, WINDOWS, content_columns};
use millstream_snapshot::{WantedOperator, WantedState};
use millstream_state::{EVENT_TIMERS, EXPIRIES, PROCESSING_TIMERS};
use millstream_task::{ENUMERATOR, SPLITS};
use millstream_types::{Column, DataType, FunctionKind, Redistribution, State, StateForm, StateKind};

use crate::edges::EdgeName;

/// What every operator of a plan keeps, and what is under way between them.
pub(super) fn wanted(plan: &Plan) -> Vec<WantedOperator> {
    let mut wanted: Vec<WantedOperator> = plan.logical.nodes.iter().map(wanted_of).collect();
    for edge in &plan.logical.edges {
        let EdgeName { name, schema, .. } = EdgeName::of(plan, edge);
        let state = WantedState { columns: schema.columns(), ..own(&name, StateForm::Overtaken) };
        wanted[edge.from.0].states.push(state.clone());
        wanted[edge.to.0].states.push(state);
    }
    wanted
}

fn wanted_of(node: &LogicalNode) -> WantedOperator {
    let states = match &node.body {
        NodeBody::Source(_) => {
            vec![own(ENUMERATOR, StateForm::Enumerator), own(SPLITS, StateForm::Splits)]
        }
        NodeBody::Sink(_) => vec![own(PREPARED, StateForm::Items)],
        NodeBody::Watermark(_) => vec![own(WATERMARK, StateForm::Subtask)],
        NodeBody::Union => Vec::new(),
        NodeBody::Function(function) => of_function(function),
    };
    WantedOperator { id: node.id.to_string(), key: key_of(node), windows: windows_of(node), states }
}

/// The columns by which an operator is keyed; none if it is not.
pub(crate) fn key_of(node: &LogicalNode) -> Vec<Column> {
    let key = node.function().and_then(|function| function.key.as_ref());
    key.map(|key| key.schema.columns()).unwrap_or_default()
}

/// How an operator cuts time into windows that all keys share; empty if it does not. What two windows that are cut
/// otherwise have gathered cannot be told apart again. Sessions and the global window take over whatever there is.
pub(crate) fn windows_of(node: &LogicalNode) -> String {
    let window = node.function().and_then(|function| function.window.as_ref());
    match window.map(|window| &window.assigner) {
        Some(WindowAssigner::Tumbling { size, offset }) => format!("tumbling of {size:?} from {offset:?} on"),
        Some(WindowAssigner::Sliding { size, slide, offset }) => {
            format!("sliding of {size:?} every {slide:?} from {offset:?} on")
        }
        Some(WindowAssigner::Session { .. }) => "sessions".to_owned(),
        Some(WindowAssigner::Global) => "global".to_owned(),
        None => String::new(),
    }
}

fn of_function(function: &FunctionNode) -> Vec<WantedState> {
    let mut states: Vec<WantedState> = function.declaration.states.iter().filter_map(declared).collect();
    states.push(own(CALLS, StateForm::Subtask));
    match function.declaration.kind {
        FunctionKind::Map | FunctionKind::Async => {}
        FunctionKind::Process => states.extend([
            own(EVENT_TIMERS, StateForm::EventTimers),
            own(PROCESSING_TIMERS, StateForm::ProcessingTimers),
            own(EXPIRIES, StateForm::Expiries),
            own(WATERMARK, StateForm::Subtask),
        ]),
        FunctionKind::Aggregate | FunctionKind::Window => windows(function, &mut states),
    }
    states
}

fn declared(state: &State) -> Option<WantedState> {
    let form = match (state.kind, state.redistribution) {
        (StateKind::Value, _) => StateForm::Value,
        (StateKind::List, _) => StateForm::List,
        (StateKind::Map, _) => StateForm::Map,
        (StateKind::Broadcast, _) => StateForm::Broadcast,
        (StateKind::Operator, Redistribution::Split) => StateForm::Items,
        (StateKind::Operator, Redistribution::Union) => StateForm::UnionItems,
    };
    Some(WantedState {
        name: state.name.clone(),
        form,
        version: state.version,
        columns: state.columns.clone(),
        migrates_from: state.migrates_from.clone(),
    })
}

fn windows(function: &FunctionNode, states: &mut Vec<WantedState>) {
    let Some(window) = &function.window else { return };
    let session = matches!(window.assigner, WindowAssigner::Session { .. });
    let accumulator = function.declaration.accumulator.as_ref();
    let accumulator = accumulator.filter(|_| function.declaration.kind == FunctionKind::Aggregate);
    let accumulators = if session { StateForm::SessionAccumulators } else { StateForm::Accumulators };
    let contents = if session { StateForm::SessionContents } else { StateForm::Contents };
    states.push(match accumulator {
        Some(accumulator) => WantedState {
            name: WINDOWS.to_owned(),
            form: accumulators,
            version: accumulator.version,
            columns: accumulator.columns.clone(),
            migrates_from: accumulator.migrates_from.clone(),
        },
        None => {
            let columns = &function.declaration.inputs[0].columns;
            let columns = content_columns(columns, function.inputs[0].times);
            WantedState { columns, ..own(WINDOWS, contents) }
        }
    });
    states.push(own(CLOCK, StateForm::Subtask));
    if let Trigger::Count(_) = window.trigger {
        let count = Column { name: "count".to_owned(), data_type: DataType::Int64, nullable: false };
        states.push(WantedState { columns: vec![count], ..own(COUNTS, accumulators) });
    }
}

/// What an operator keeps for itself.
fn own(name: &str, form: StateForm) -> WantedState {
    WantedState { name: name.to_owned(), form, version: 1, columns: Vec::new(), migrates_from: Vec::new() }
}
