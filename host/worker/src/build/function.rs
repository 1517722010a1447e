//! Operators with a user's function: from what the plan says to what the operators want to be told.

use millstream_graph::{
    BoundColumn, FunctionNode, KeyPlan, LogicalNode, OutputColumn as Planned, OutputPlan, TrapPolicy,
    Trigger as PlannedTrigger, WindowAssigner as PlannedAssigner, WindowSpec as PlannedWindow,
};
use millstream_operator::{Operator, OperatorContext, OperatorError, UserFunction};
use millstream_operators::{
    DeclaredKey, FIRED_ROWS, KeyColumn, KeySpec, MapOperator, MapSpec, OnTrap, OutputColumn, OutputSpec,
    PortLayout, ProcessInput, ProcessOperator, ProcessSpec, ProjectionSpec, ReadColumn, RowErrorSpec,
    TimerSpec, Trigger, WindowAssigner, WindowBounds, WindowFunction, WindowSpec, window_operator,
};
use millstream_types::{DataType, Field, FunctionKind, Schema};

use super::{state::StateBackend, subtask::millis};

/// The operator of a node that calls a function.
pub(super) fn operator(
    node: &LogicalNode,
    plan: &FunctionNode,
    row_errors: RowErrorSpec,
    function: Box<dyn UserFunction>,
    ctx: &OperatorContext,
    state: &StateBackend,
) -> Result<Box<dyn Operator>, OperatorError> {
    Ok(match plan.declaration.kind {
        FunctionKind::Map | FunctionKind::Async => {
            let spec = map(node, plan, row_errors);
            Box::new(MapOperator::new(spec, function, ctx.clone()))
        }
        FunctionKind::Process => {
            let spec = process(node, plan, row_errors);
            let keyed = state.keyed(&spec.states);
            Box::new(ProcessOperator::with_state(spec, function, ctx.clone(), keyed))
        }
        FunctionKind::Aggregate | FunctionKind::Window => {
            window_operator(window(node, plan, row_errors), function, ctx.clone(), &|| state.overflow())
        }
    })
}

fn map(node: &LogicalNode, plan: &FunctionNode, row_errors: RowErrorSpec) -> MapSpec {
    MapSpec {
        input: projection(node, plan, 0),
        output: row_output(plan),
        row_errors,
        on_trap: match node.on_trap {
            TrapPolicy::Fail => OnTrap::Fail,
            TrapPolicy::Isolate => OnTrap::Isolate,
        },
        lifecycle: plan.declaration.lifecycle.clone(),
    }
}

fn process(node: &LogicalNode, plan: &FunctionNode, row_errors: RowErrorSpec) -> ProcessSpec {
    let key = plan.key.clone().unwrap_or_else(whole_stream);
    let input = |port| ProcessInput {
        rows: projection(node, plan, port),
        key: key.columns.clone(),
        output: row_output(plan),
    };
    ProcessSpec {
        inputs: (0..plan.inputs.len()).map(input).collect(),
        key: KeySpec { stored: types(&key.schema), declared: declared_key(plan, &key) },
        states: plan.declaration.states.clone(),
        state_ttl: plan.state_ttl.map(|ttl| ttl.as_millis().try_into().unwrap_or(i64::MAX)),
        timers: timers(plan, &key),
        row_errors,
        lifecycle: plan.declaration.lifecycle.clone(),
    }
}

fn window(node: &LogicalNode, plan: &FunctionNode, row_errors: RowErrorSpec) -> WindowSpec {
    let key = plan.key.clone().unwrap_or_else(whole_stream);
    let window =
        plan.window.as_ref().expect("the plan gives every aggregate and window function its windows");
    let columns = key.columns.iter().zip(key.schema.fields());
    let function_key = key.function_columns.iter().zip(&plan.declaration.key);
    WindowSpec {
        assigner: assigner(window.assigner),
        clock: window.clock,
        trigger: trigger(window),
        purging: window.purge,
        lateness: millis(window.lateness),
        late_port: node.late_port().map(|p| p.index()),
        key: columns.map(|(&index, field)| KeyColumn { index, field: field.clone() }).collect(),
        function: window_function(plan),
        input: projection(node, plan, 0),
        function_key: function_key.map(|(bound, column)| read(bound, column.data_type)).collect(),
        bounds: WindowBounds { start: window.start_column.clone(), end: window.end_column.clone() },
        output: window_output(plan, &key, window),
        row_errors,
        lifecycle: plan.declaration.lifecycle.clone(),
        fired_rows: FIRED_ROWS,
    }
}

fn window_function(plan: &FunctionNode) -> WindowFunction {
    match &plan.declaration.accumulator {
        Some(accumulator) if plan.declaration.kind == FunctionKind::Aggregate => WindowFunction::Aggregate {
            accumulator: accumulator.columns.clone(),
            version: accumulator.version,
            migrates_from: accumulator.migrates_from.clone(),
        },
        _ => WindowFunction::Window { columns: plan.declaration.inputs[0].columns.clone() },
    }
}

fn assigner(planned: PlannedAssigner) -> WindowAssigner {
    match planned {
        PlannedAssigner::Tumbling { size, offset } => {
            WindowAssigner::Tumbling { size: millis(size), offset: millis(offset) }
        }
        PlannedAssigner::Sliding { size, slide, offset } => {
            WindowAssigner::Sliding { size: millis(size), slide: millis(slide), offset: millis(offset) }
        }
        PlannedAssigner::Session { gap } => WindowAssigner::Session { gap: millis(gap) },
        PlannedAssigner::Global => WindowAssigner::Global,
    }
}

fn trigger(window: &PlannedWindow) -> Trigger {
    match window.trigger {
        PlannedTrigger::EventTime | PlannedTrigger::ProcessingTime => Trigger::AtEnd,
        PlannedTrigger::Count(count) => Trigger::Count(count),
        PlannedTrigger::Continuous(span) => {
            Trigger::Continuous { clock: window.clock, interval: millis(span) }
        }
    }
}

/// What a function reads of the rows of a port.
fn projection(node: &LogicalNode, plan: &FunctionNode, port: usize) -> ProjectionSpec {
    let input = &plan.inputs[port];
    let stream = node.inputs[port].schema.fields();
    let columns = input.columns.iter().map(|bound| read(bound, stream[bound.column].data_type));
    ProjectionSpec { columns: columns.collect(), times: input.times }
}

fn read(bound: &BoundColumn, data_type: DataType) -> ReadColumn {
    let data_type = bound.cast.unwrap_or(data_type);
    ReadColumn { index: bound.column, data_type, reject_null: bound.reject_null }
}

fn declared_key(plan: &FunctionNode, key: &KeyPlan) -> Vec<DeclaredKey> {
    let declared = key.function_columns.iter().zip(&plan.declaration.key);
    declared.map(|(b, c)| DeclaredKey { data_type: c.data_type, reject_null: b.reject_null }).collect()
}

/// Outputs whose origins are rows of the input.
fn row_output(plan: &FunctionNode) -> OutputSpec {
    let column = |column: &Planned| match *column {
        Planned::Input(i) => OutputColumn::Carried(i),
        Planned::Made(i) => OutputColumn::Made(i),
        other => unreachable!("rows have no {other:?}"),
    };
    output(plan, |o| o.columns.iter().map(column).collect())
}

/// Outputs whose origins are fired windows: the key's columns, then the bounds that are asked for.
fn window_output(plan: &FunctionNode, key: &KeyPlan, window: &PlannedWindow) -> OutputSpec {
    let start = key.columns.len();
    let end = start + usize::from(window.start_column.is_some());
    let column = |column: &Planned| match *column {
        Planned::Key(i) => OutputColumn::Carried(i),
        Planned::WindowStart => OutputColumn::Carried(start),
        Planned::WindowEnd => OutputColumn::Carried(end),
        Planned::Made(i) => OutputColumn::Made(i),
        other => unreachable!("windows have no {other:?}"),
    };
    output(plan, |o| o.columns.iter().map(column).collect())
}

fn output(plan: &FunctionNode, columns: impl Fn(&OutputPlan) -> Vec<OutputColumn>) -> OutputSpec {
    let port = |o: &OutputPlan| PortLayout { schema: o.schema.clone(), columns: columns(o) };
    OutputSpec { function: plan.declaration.name.clone(), ports: plan.outputs.iter().map(port).collect() }
}

/// Outputs of timers. Their origin has the columns that any port carries: key columns, and nulls where a port carries
/// another column of rows, which a timer has not.
fn timers(plan: &FunctionNode, key: &KeyPlan) -> TimerSpec {
    let mut origin: Vec<(Field, Option<usize>)> = Vec::new();
    let mut ports = Vec::new();
    for output in &plan.outputs {
        let columns = output.timer_columns.as_ref().unwrap_or(&output.columns);
        let column = |(planned, field): (&Planned, &Field)| {
            let key_column = match *planned {
                Planned::Made(i) => return OutputColumn::Made(i),
                ref other => key_column(other, key),
            };
            let field = key_column.map_or(field, |i| &key.schema.fields()[i]);
            let name = format!("{} {}", origin.len(), field.name);
            let nullable = field.nullable || key_column.is_none();
            origin.push((Field { name, data_type: field.data_type, nullable }, key_column));
            OutputColumn::Carried(origin.len() - 1)
        };
        let columns = columns.iter().zip(output.schema.fields()).map(column).collect();
        ports.push(PortLayout { schema: output.schema.clone(), columns });
    }
    let unfilled = plan.outputs.iter().map(|output| unfilled(output, key)).collect();
    let (fields, key_of_column): (Vec<_>, Vec<_>) = origin.into_iter().unzip();
    let output = OutputSpec { function: plan.declaration.name.clone(), ports };
    TimerSpec { origin: Schema::new(fields), key_of_column, unfilled, key: key.schema.clone(), output }
}

/// The column of the key that a column of an output is.
fn key_column(planned: &Planned, key: &KeyPlan) -> Option<usize> {
    match *planned {
        Planned::Key(i) => Some(i),
        Planned::Input(i) => key.columns.iter().position(|&column| column == i),
        _ => None,
    }
}

/// The first column of a port that is a row's and not null, where a timer's rows would have none.
fn unfilled(output: &OutputPlan, key: &KeyPlan) -> Option<String> {
    let columns = output.timer_columns.as_ref().unwrap_or(&output.columns);
    let mut fields = columns.iter().zip(output.schema.fields());
    let lacking = |column: &Planned| matches!(column, Planned::Input(_)) && key_column(column, key).is_none();
    let found = fields.find(|(column, field)| lacking(column) && !field.nullable);
    found.map(|(_, field)| field.name.clone())
}

fn whole_stream() -> KeyPlan {
    KeyPlan { columns: Vec::new(), schema: Schema::empty(), function_columns: Vec::new() }
}

fn types(schema: &Schema) -> Vec<DataType> {
    schema.fields().iter().map(|f| f.data_type).collect()
}
