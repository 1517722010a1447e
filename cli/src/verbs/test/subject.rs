//! What a fixture tests, ready to be driven: a job built of the real operators, with the sources and sinks that the
//! fixture plays.

use std::{path::Path, sync::Arc};

use miette::{IntoDiagnostic, miette};
use millstream_graph::{
    JobFile, JobFormat, LogicalGraph, ModuleResolver, NodeBody, NodeIndex, Plan, SourceText,
};
use millstream_operator::ManualClock;
use millstream_types::Schema;
use millstream_wasm::WasmEngine;
use millstream_worker::{Catalog, Modules, SteppedJob};

use super::{
    fixture::{Fixture, FunctionHeader, Header, JobHeader},
    form::Form,
    function_job,
    line::ExpectedRow,
};
use crate::{exit::Failure, load, printer::Printer};

/// A job under test.
pub(super) struct Subject {
    pub(super) job: SteppedJob,
    pub(super) sources: Vec<Source>,
    sinks: Vec<(NodeIndex, Form)>,
    pub(super) rows: RowTimes,
}

/// A source that the fixture plays.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) node: NodeIndex,
    /// Ports by the names that a fixture has for them, the main one first.
    pub(super) ports: Vec<(String, Schema)>,
}

/// Where the event times of rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowTimes {
    /// From the row, as the source of the job does it.
    Source,
    /// They stand beside the row, and may be missing.
    Beside,
    /// They stand beside the row, and the function needs them.
    Required,
}

/// Where the module of a function comes from.
pub(super) struct FunctionModule<'a> {
    pub(super) engine: &'a Arc<WasmEngine>,
    /// The one that the crate around the fixture makes.
    pub(super) built: Option<&'a Path>,
}

impl Subject {
    pub(super) fn new(
        fixture: &Fixture,
        module: &FunctionModule<'_>,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let clock = Arc::new(ManualClock::new(fixture.header.processing_time().0));
        match &fixture.header {
            Header::Function(header) => of_function(fixture, header, module, clock),
            Header::Job(header) => of_job(fixture, header, clock, printer),
        }
    }

    /// The form of the rows of a sink, and its position among all.
    pub(super) fn form(&self, sink: NodeIndex) -> Option<(usize, &Form)> {
        let at = self.sinks.iter().position(|(node, _)| *node == sink)?;
        Some((at, &self.sinks[at].1))
    }

    /// The form of the sink that an expectation is about, and its position.
    pub(super) fn form_of(&self, row: &ExpectedRow) -> Result<(usize, &Form), String> {
        let port = row.port.as_ref().filter(|port| *port != function_job::MAIN_SINK);
        let named = |form: &Form| !form.rejected && form.port.as_ref() == port && form.sink == row.sink;
        let at = self.sinks.iter().position(|(_, form)| named(form)).ok_or_else(|| self.unknown(row))?;
        Ok((at, &self.sinks[at].1))
    }

    /// The position of the sink that gets the rows that a function refuses.
    pub(super) fn rejected(&self) -> Option<usize> {
        self.sinks.iter().position(|(_, form)| form.rejected)
    }

    fn unknown(&self, row: &ExpectedRow) -> String {
        let names = |name: fn(&Form) -> Option<&String>| {
            let forms = self.sinks.iter().map(|(_, form)| form).filter(|form| !form.rejected);
            forms.filter_map(name).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let (ports, sinks) = (names(|form| form.port.as_ref()), names(|form| form.sink.as_ref()));
        match (&row.port, &row.sink) {
            (Some(port), _) if !ports.is_empty() => {
                format!("found the port `{port}`, expected {ports} or none")
            }
            (Some(port), _) if self.rejected().is_some() => {
                format!("found the port `{port}`, expected none: the function has only one")
            }
            (Some(_), _) => {
                "found `port`, which is for functions, expected none or the `sink` of a job".to_owned()
            }
            (_, Some(sink)) if !sinks.is_empty() => {
                format!("found the sink `{sink}`, expected one of {sinks}")
            }
            (_, Some(_)) => "found `sink`, which is for jobs with several: expected none".to_owned(),
            (None, None) => format!("found no `sink`, expected one of {sinks}"),
        }
    }
}

fn of_function(
    fixture: &Fixture,
    header: &FunctionHeader,
    module: &FunctionModule<'_>,
    clock: Arc<ManualClock>,
) -> Result<Subject, Failure> {
    let invalid =
        |problem: String| Failure::invalid(miette!("{}", fixture.error(fixture.header_line(), problem)));
    let named = header.module.as_ref().map(|path| fixture.resolve(path));
    let path = named.or_else(|| module.built.map(Path::to_owned));
    let path = path.ok_or_else(|| invalid(NO_MODULE.to_owned()))?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let modules = Modules::new(module.engine.clone());
    let manifest = modules.resolve(&path).map_err(invalid)?;
    let function = function_job::function(header, &manifest).map_err(invalid)?;
    let document = function_job::document(header, function, &path).map_err(invalid)?;
    // A fixture means what it says, so nothing in it stands for a variable.
    let text = document.to_string().replace("${", "$${");
    let file = JobFile::read(SourceText::new(&fixture.path, text), JobFormat::Json, &|_| None);
    let plan = Plan::new(file, &modules, &Catalog::new("")).map_err(|error| {
        let problems = error.0.problems().iter().map(|problem| match &problem.help {
            Some(help) => format!("{}; {help}", problem.message),
            None => problem.message.clone(),
        });
        invalid(problems.collect::<Vec<_>>().join("; "))
    })?;
    let mut sources = sources(&plan.logical);
    for (port, input) in sources.iter_mut().flat_map(|source| &mut source.ports).zip(&function.inputs) {
        port.0 = input.name.clone();
    }
    let sinks = sinks(&plan.logical, |form, name| {
        form.times = fixture.header.compares_times();
        form.rejected = name == function_job::REJECTED_SINK;
        form.port = (name != function_job::MAIN_SINK).then(|| name.to_owned());
    });
    let rows = match &header.time {
        Some(_) => RowTimes::Source,
        None if function_job::needs_times(header, function) => RowTimes::Required,
        None => RowTimes::Beside,
    };
    let job = SteppedJob::new(plan, &modules, clock).into_diagnostic().map_err(Failure::invalid)?;
    Ok(Subject { job, sources, sinks, rows })
}

fn of_job(
    fixture: &Fixture,
    header: &JobHeader,
    clock: Arc<ManualClock>,
    printer: &Printer,
) -> Result<Subject, Failure> {
    let loaded = load::load(&fixture.resolve(&header.job), Some(1), printer)?;
    let sources = sources(&loaded.plan.logical);
    let several =
        loaded.plan.logical.nodes.iter().filter(|n| matches!(n.body, NodeBody::Sink(_))).count() > 1;
    let sinks = sinks(&loaded.plan.logical, |form, name| {
        form.times = fixture.header.compares_times();
        form.sink = several.then(|| name.to_owned());
    });
    let job =
        SteppedJob::new(loaded.plan, &loaded.modules, clock).into_diagnostic().map_err(Failure::invalid)?;
    Ok(Subject { job, sources, sinks, rows: RowTimes::Source })
}

fn sources(graph: &LogicalGraph) -> Vec<Source> {
    let nodes = graph.iter().filter(|(_, node)| matches!(node.body, NodeBody::Source(_)));
    let ports = |node: &millstream_graph::LogicalNode| {
        node.outputs.iter().map(|port| (port.name.clone(), port.schema.clone())).collect()
    };
    nodes.map(|(index, node)| Source { name: node.name.clone(), node: index, ports: ports(node) }).collect()
}

fn sinks(graph: &LogicalGraph, name: impl Fn(&mut Form, &str)) -> Vec<(NodeIndex, Form)> {
    let nodes = graph.iter().filter(|(_, node)| matches!(node.body, NodeBody::Sink(_)));
    let form = |node: &millstream_graph::LogicalNode| {
        let mut form = Form::new(&node.inputs[0].schema);
        name(&mut form, &node.name);
        form
    };
    nodes.map(|(index, node)| (index, form(node))).collect()
}

const NO_MODULE: &str = "found no `module`, and the fixture is not in a crate of functions: expected the path of a \
                         component, such as \"module\":\"flights.wasm\"";
