//! Operators: a function or a builtin, its input, its output.

use std::{sync::Arc, time::Duration};

use millstream_types::{Clock, Function, FunctionKind, Limits};

use super::{Draft, Drafts, columns, draft::PortDraft, event_time, input, key, modules, outputs, parameters};
use crate::{
    FunctionLimits, FunctionNode, InputPort, KeyPlan, LogicalModule, NodeBody, OutputPlan, RowPolicy,
    TimeSpec, TrapPolicy, WindowAssigner,
    job_file::{OperatorTable, TimeTable, WindowTable, Work},
    logical::kind_name,
    nearest::suggestion,
    problem::Problem,
    source_text::Span,
};

pub(super) fn draft(
    drafts: &Drafts<'_>,
    index: usize,
    table: &OperatorTable,
    modules: &[Option<LogicalModule>],
) -> Draft {
    let mut draft = match &table.work {
        Some(Work::Function { module, function, span }) => {
            match modules::function(drafts.file, modules, (module, function), span) {
                Some((module, function)) => Call { drafts, index, table, module, function, span }.draft(),
                None => unresolved(drafts, index, table),
            }
        }
        Some(work @ (Work::Union | Work::Watermark)) => builtin(drafts, index, table, work),
        None => unresolved(drafts, index, table),
    };
    time(drafts, table, &mut draft);
    draft
}

/// A node whose function is not known. Its key can be checked all the same.
fn unresolved(drafts: &Drafts<'_>, index: usize, table: &OperatorTable) -> Draft {
    let draft = unknown(drafts, index, table);
    if let (Some(key), Some(port)) = (&table.key, draft.inputs.first()) {
        key::positions(drafts, key, &port.schema, &input::stream_names(drafts, index));
    }
    draft
}

/// A node of which only the input is known.
fn unknown(drafts: &Drafts<'_>, index: usize, table: &OperatorTable) -> Draft {
    let inputs = (0..table.inputs.len()).filter_map(|i| input::port(drafts, index, i, "input")).collect();
    Draft {
        parallelism: drafts.parallelism(index),
        inputs,
        ports: None,
        body: None,
        on_trap: table.on_trap.as_ref().map_or(TrapPolicy::Fail, |t| t.value),
        key: None,
        keyed: false,
        partition: table.partition.clone(),
        timeless: drafts.wires_into(index).find_map(|w| drafts.timeless(w)),
        time_column: None,
    }
}

/// A union or watermark operator, which passes on what it reads.
fn builtin(drafts: &Drafts<'_>, index: usize, table: &OperatorTable, work: &Work) -> Draft {
    one_input(drafts, table, "input", work_name(work));
    let mut draft = unknown(drafts, index, table);
    let schema = draft.inputs.first().map(|p| p.schema.clone());
    let streams = input::stream_names(drafts, index);
    draft.key =
        table.key.as_ref().zip(schema.as_ref()).and_then(|(k, s)| key::positions(drafts, k, s, &streams));
    draft.ports = Some(vec![PortDraft::data("output", schema)]);
    draft.body = matches!(work, Work::Union).then_some(NodeBody::Union);
    draft
}

fn work_name(work: &Work) -> &'static str {
    if matches!(work, Work::Union) { "union" } else { "watermark" }
}

/// The time column of what the operator makes; for a watermark operator that is all it does.
fn time(drafts: &Drafts<'_>, table: &OperatorTable, draft: &mut Draft) {
    let Some(time) = &table.time else { return };
    let Some(column) = &time.column else { return };
    let main = draft.ports.as_ref().and_then(|ports| ports.first()?.schema.as_ref());
    let Some(schema) = main else { return };
    draft.time_column = event_time::column(drafts, column, schema, " of the operator's output");
    if let (Some(Work::Watermark), Some(column)) = (&table.work, draft.time_column) {
        let TimeTable { out_of_orderness, idle, .. } = *time;
        draft.body = Some(NodeBody::Watermark(TimeSpec { column, out_of_orderness, idle }));
    }
}

/// That an operator has the one input that it needs, under the right name if it has one.
fn one_input(drafts: &Drafts<'_>, table: &OperatorTable, port: &str, reader: &str) {
    for (position, input) in table.inputs.iter().enumerate() {
        let Some(name) = &input.port else { continue };
        if name.value != port || position > 0 {
            let message = format!("`{reader}` has no input port `{}`", name.value);
            let help = suggestion(&name.value, "its port", [port]);
            drafts.problems().push(Problem::error(message).at(&name.span, "not a port").maybe_help(help));
        }
    }
}

/// A call of a function in the making.
struct Call<'a> {
    drafts: &'a Drafts<'a>,
    index: usize,
    table: &'a OperatorTable,
    module: usize,
    function: Arc<Function>,
    span: &'a Span,
}

impl Call<'_> {
    fn draft(self) -> Draft {
        let Self { drafts, index, table, function, span, .. } = &self;
        let declared = &function.inputs[0];
        one_input(drafts, table, &declared.name, &function.name);
        let port = input::port(drafts, *index, 0, &declared.name);
        let schema = port.as_ref().map(|p| &p.schema);
        let key = key::plan(drafts, *index, table, function, span, schema);
        let mut draft = unknown(drafts, *index, table);
        self.check_window(draft.timeless);
        self.check_policies();
        columns::check_names(drafts, &table.columns, function);
        let plans = self.outputs(port.as_ref(), &key);
        draft.ports = Some(self.ports(port.as_ref(), plans.as_deref()));
        draft.key =
            key.as_ref().ok().and_then(|k| k.as_ref()).map(|k| k.columns.clone()).filter(|k| !k.is_empty());
        draft.keyed = is_keyed(function.kind);
        draft.parallelism = self.parallelism(key.as_ref().ok().and_then(|k| k.as_ref()));
        draft.body = self.body(port.as_ref(), key, plans).map(|node| NodeBody::Function(Box::new(node)));
        draft.inputs = port.into_iter().collect();
        draft
    }

    fn body(
        &self,
        port: Option<&InputPort>,
        key: Result<Option<KeyPlan>, ()>,
        outputs: Option<Vec<OutputPlan>>,
    ) -> Option<FunctionNode> {
        let Self { drafts, index, table, function, span, .. } = self;
        let parameters = parameters::resolve(drafts, table, function, span);
        let streams = input::stream_names(drafts, *index);
        let input = port.and_then(|port| {
            columns::bind(drafts, table, (function, &function.inputs[0]), span, &port.schema, &streams)
        });
        let module = &drafts.file.modules[self.module];
        Some(FunctionNode {
            module: self.module,
            declaration: function.clone(),
            parameters: parameters?,
            inputs: vec![input?],
            key: key.ok()?,
            state_ttl: self.state_ttl(),
            window: table.window.as_ref().map(|w| w.spec.clone()),
            outputs: outputs?,
            limits: limits(&table.limits, &module.limits),
            allow: table.allow.clone().or_else(|| module.allow.clone()).unwrap_or_default(),
        })
    }

    fn outputs(
        &self,
        port: Option<&InputPort>,
        key: &Result<Option<KeyPlan>, ()>,
    ) -> Option<Vec<OutputPlan>> {
        let key = key.as_ref().ok()?.as_ref();
        if has_windows(self.function.kind) {
            return Some(outputs::of_windows(&self.function, key?, self.table.window.as_ref()?));
        }
        Some(outputs::of_rows(&self.function, &port?.schema, key))
    }

    fn ports(&self, port: Option<&InputPort>, plans: Option<&[OutputPlan]>) -> Vec<PortDraft> {
        let schema = |i: usize| plans.map(|plans| plans[i].schema.clone());
        let declared = self.function.outputs.iter().enumerate();
        let mut ports: Vec<_> = declared.map(|(i, o)| PortDraft::data(o.name.as_str(), schema(i))).collect();
        let event_windows = self.table.window.as_ref().is_none_or(|w| w.spec.clock == Clock::Event);
        if has_windows(self.function.kind) && event_windows {
            ports.push(PortDraft::late(port.map(|p| p.schema.clone())));
        }
        ports.extend((self.table.on_error.value == RowPolicy::DeadLetter).then(PortDraft::dead_letter));
        ports
    }

    /// Aggregate and window functions have windows, others have none.
    fn check_window(&self, timeless: Option<usize>) {
        let Self { drafts, table, function, span, .. } = self;
        match (&table.window, has_windows(function.kind)) {
            (Some(window), true) => {
                event_time::check_window(drafts, &window.spec, &window.span, timeless);
                outputs::check_bounds(drafts, function, table.key.as_ref(), window);
                self.check_merges(window);
                self.check_copies(window);
            }
            (Some(window), false) => {
                let message = format!(
                    "`{}` is a {} function, which has no windows",
                    function.name,
                    kind_name(function.kind)
                );
                let problem = Problem::error(message).at(&window.span, "leave it out");
                drafts.problems().push(problem.help("windows go with aggregate and window functions"));
            }
            (None, true) if !table.has_window => {
                let message = format!(
                    "`{}` is {} function, which needs a window",
                    function.name,
                    kind_with_article(function.kind)
                );
                let problem = Problem::error(message).at(span, "has no window");
                drafts.problems().push(problem.help("such as window = { tumbling = \"1h\" }"));
            }
            (None, _) => {}
        }
        if function.kind == FunctionKind::Process {
            event_time::check_timers(drafts, function, span, timeless);
        }
    }

    /// Sessions grow together and sliding windows are made of slices: both merge accumulators.
    fn check_merges(&self, window: &WindowTable) {
        let merging = match window.spec.assigner {
            WindowAssigner::Session { .. } => "session windows",
            WindowAssigner::Sliding { size, slide, .. } if slide < size => "sliding windows",
            _ => return,
        };
        if self.function.accumulator.as_ref().is_none_or(|accumulator| accumulator.merges) {
            return;
        }
        let message = format!("`{}` cannot merge accumulators, which {merging} need", self.function.name);
        let problem = Problem::error(message).at(self.span, "merges nothing").at(&window.span, "merges");
        let help = "give the function a `merge`, or use a tumbling or global window";
        self.drafts.problems().push(problem.help(help));
    }

    /// Where a function sees whole windows, each of them keeps its rows.
    fn check_copies(&self, window: &WindowTable) {
        let (copies, most) = (window.spec.assigner.windows_of_a_row(), u128::from(Limits::COPIES_OF_A_ROW));
        if self.function.kind != FunctionKind::Window || copies <= most {
            return;
        }
        let name = &self.function.name;
        let message = format!(
            "`{name}` sees whole windows, and each row would be kept for {copies} of them: expected at most {most}"
        );
        let problem = Problem::error(message).at(&window.span, "windows overlap so much");
        self.drafts
            .problems()
            .push(problem.help("an aggregate function keeps one accumulator in the place of rows"));
    }

    /// What the operator says, or else the job; of functions that keep something for each key.
    fn state_ttl(&self) -> Option<Duration> {
        if self.function.kind != FunctionKind::Process {
            return None;
        }
        self.table.state_ttl.as_ref().map(|ttl| ttl.value).or(self.drafts.file.settings.state_ttl)
    }

    fn check_policies(&self) {
        if let Some(ttl) = &self.table.state_ttl
            && self.function.kind != FunctionKind::Process
        {
            let kind = kind_with_article(self.function.kind);
            let message =
                format!("`{}` is {kind} function, which keeps nothing that could expire", self.function.name);
            let problem = Problem::error(message).at(&ttl.span, "leave it out");
            self.drafts
                .problems()
                .push(problem.help("windows go by themselves; `state-ttl` is for process functions"));
        }
        let Some(on_trap) = &self.table.on_trap else { return };
        if on_trap.value == TrapPolicy::Isolate && self.function.kind != FunctionKind::Map {
            let message = format!(
                "`{}` is {} function: only calls of map functions can be run again to find the row that traps",
                self.function.name,
                kind_with_article(self.function.kind)
            );
            self.drafts.problems().push(Problem::error(message).at(&on_trap.span, "leave it out"));
        }
    }

    /// One subtask where all rows have one key, else as for any node.
    fn parallelism(&self, key: Option<&KeyPlan>) -> u32 {
        let own = &self.drafts.node(self.index).parallelism;
        if !key.is_some_and(KeyPlan::is_whole_stream) {
            return self.drafts.parallelism(self.index);
        }
        if let Some(own) = own.as_ref().filter(|p| p.value > 1) {
            let message = format!(
                "`{}` has one key for the whole stream, which one subtask has to see",
                self.function.name
            );
            let problem = Problem::error(message).at(&own.span, "expected 1");
            self.drafts.problems().push(problem.help("leave `parallelism` out, or give it a `key`"));
        }
        1
    }
}

fn limits(own: &FunctionLimits, module: &FunctionLimits) -> FunctionLimits {
    FunctionLimits {
        memory: own.memory.or(module.memory),
        call_timeout: own.call_timeout.or(module.call_timeout),
        output: own.output.or(module.output),
        recycle_memory: own.recycle_memory.or(module.recycle_memory),
    }
}

fn has_windows(kind: FunctionKind) -> bool {
    matches!(kind, FunctionKind::Aggregate | FunctionKind::Window)
}

fn is_keyed(kind: FunctionKind) -> bool {
    kind == FunctionKind::Process || has_windows(kind)
}

fn kind_with_article(kind: FunctionKind) -> String {
    let name = kind_name(kind);
    let article = if name.starts_with('a') { "an" } else { "a" };
    format!("{article} {name}")
}
