//! Sources, operators and sinks.

use std::collections::BTreeMap;

use millstream_types::Clock;
use serde::Serialize;

use super::columns::{OutputDescription, ReadDescription, output, reads};
use crate::{
    FunctionNode, LogicalGraph, LogicalNode, NodeBody, NodeIndex, RowPolicy, SourceAlignment, SourceNode,
    TimeSpec, TrapPolicy, Trigger, WindowAssigner, WindowSpec, logical::kind_name, units::duration_text,
};

/// A source, operator or sink.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeDescription {
    /// What the job file calls it.
    pub name: String,
    /// Under which its state is kept.
    pub id: String,
    /// `source`, `map`, `process`, `aggregate`, `window`, `union`, `watermark` or `sink`.
    pub kind: String,
    /// The connector of a source or sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<String>,
    /// `module.function`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The streams that it reads, as `node.port`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// The parameters of the function, defaults filled in.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// What the function is granted beyond computing, as in `env:TOKEN`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The columns that go into the function.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadDescription>,
    /// The key columns; empty for one key over the whole stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Vec<String>>,
    /// The windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowDescription>,
    /// Where event times come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeDescription>,
    /// `fail`, `skip` or `dead-letter`; none for a sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<String>,
    /// `isolate`, where it is that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_trap: Option<String>,
    /// What comes out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputDescription>,
}

/// The windows of an operator. Spans of time are as in the job file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WindowDescription {
    /// `tumbling`, `sliding`, `session` or `global`.
    pub kind: String,
    /// The size, or the gap of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// How often a sliding window starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slide: Option<String>,
    /// By how much windows are shifted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    /// `event` or `processing`.
    pub clock: String,
    /// `event-time`, `processing-time`, `count 100` or `continuous 10s`.
    pub trigger: String,
    /// Whether a window is cleared when it fires.
    pub purge: bool,
    /// How long late rows are taken.
    pub lateness: String,
}

/// Where event times come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TimeDescription {
    /// The column.
    pub column: String,
    /// How far a row may stand behind the latest one.
    pub out_of_orderness: String,
    /// After how long watermarks are no longer held up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<String>,
    /// How far a source's subtasks may be apart, or `off`, where the job file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<String>,
    /// The group of sources that this is held to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment_group: Option<String>,
}

pub(super) fn describe(graph: &LogicalGraph, index: NodeIndex) -> NodeDescription {
    let node = graph.node(index);
    let stream = |edge: &crate::LogicalEdge| {
        let from = graph.node(edge.from);
        format!("{}.{}", from.name, from.outputs[edge.output.index()].name)
    };
    let common = NodeDescription {
        name: node.name.clone(),
        id: node.id.to_string(),
        inputs: graph.edges_into(index).map(stream).collect(),
        on_error: (!matches!(node.body, NodeBody::Sink(_))).then(|| policy(node.on_error).to_owned()),
        on_trap: (node.on_trap == TrapPolicy::Isolate).then(|| "isolate".to_owned()),
        outputs: node.outputs.iter().map(output).collect(),
        ..NodeDescription::default()
    };
    let kind = |kind: &str| kind.to_owned();
    match &node.body {
        NodeBody::Source(source) => NodeDescription {
            kind: kind("source"),
            connector: Some(source.connector.clone()),
            time: source_time(node, source),
            ..common
        },
        NodeBody::Sink(sink) => {
            NodeDescription { kind: kind("sink"), connector: Some(sink.connector.clone()), ..common }
        }
        NodeBody::Union => NodeDescription { kind: kind("union"), ..common },
        NodeBody::Watermark(time) => {
            NodeDescription { kind: kind("watermark"), time: Some(self::time(node, time)), ..common }
        }
        NodeBody::Function(f) => function(graph, node, f, common),
    }
}

fn function(
    graph: &LogicalGraph,
    node: &LogicalNode,
    f: &FunctionNode,
    common: NodeDescription,
) -> NodeDescription {
    let schema = &node.inputs[0].schema;
    NodeDescription {
        kind: kind_name(f.declaration.kind).to_owned(),
        function: Some(format!("{}.{}", graph.modules[f.module].name, f.declaration.name)),
        parameters: f.parameters.clone(),
        allow: f.allow.iter().map(ToString::to_string).collect(),
        reads: reads(&f.declaration.inputs[0].columns, &f.inputs[0].columns, schema),
        key: f.key.as_ref().map(|k| k.schema.fields().iter().map(|f| f.name.clone()).collect()),
        window: f.window.as_ref().map(window),
        ..common
    }
}

fn source_time(node: &LogicalNode, source: &SourceNode) -> Option<TimeDescription> {
    let time = source.time.as_ref()?;
    let (port, column) =
        time.columns.iter().enumerate().find_map(|(port, column)| Some((port, (*column)?)))?;
    let column = node.outputs.get(port)?.schema.fields()[column].name.clone();
    let (alignment, alignment_group) = match &time.alignment {
        SourceAlignment::Usual => (None, None),
        SourceAlignment::MaxDrift { drift, group } => (Some(duration_text(*drift)), group.clone()),
        SourceAlignment::Off => (Some("off".to_owned()), None),
    };
    Some(TimeDescription {
        column,
        out_of_orderness: duration_text(time.out_of_orderness),
        idle: time.idle.map(duration_text),
        alignment,
        alignment_group,
    })
}

fn time(node: &LogicalNode, time: &TimeSpec) -> TimeDescription {
    TimeDescription {
        column: node.inputs[0].schema.fields()[time.column].name.clone(),
        out_of_orderness: duration_text(time.out_of_orderness),
        idle: time.idle.map(duration_text),
        alignment: None,
        alignment_group: None,
    }
}

fn window(spec: &WindowSpec) -> WindowDescription {
    let text = |d: std::time::Duration| Some(duration_text(d));
    let (kind, size, slide, offset) = match spec.assigner {
        WindowAssigner::Tumbling { size, offset } => ("tumbling", text(size), None, Some(offset)),
        WindowAssigner::Sliding { size, slide, offset } => ("sliding", text(size), text(slide), Some(offset)),
        WindowAssigner::Session { gap } => ("session", text(gap), None, None),
        WindowAssigner::Global => ("global", None, None, None),
    };
    WindowDescription {
        kind: kind.to_owned(),
        size,
        slide,
        offset: offset.filter(|o| !o.is_zero()).map(duration_text),
        clock: if spec.clock == Clock::Event { "event" } else { "processing" }.to_owned(),
        trigger: trigger(spec.trigger),
        purge: spec.purge,
        lateness: duration_text(spec.lateness),
    }
}

fn trigger(trigger: Trigger) -> String {
    match trigger {
        Trigger::EventTime => "event-time".to_owned(),
        Trigger::ProcessingTime => "processing-time".to_owned(),
        Trigger::Count(rows) => format!("count {rows}"),
        Trigger::Continuous(interval) => format!("continuous {}", duration_text(interval)),
    }
}

fn policy(policy: RowPolicy) -> &'static str {
    match policy {
        RowPolicy::Fail => "fail",
        RowPolicy::Skip => "skip",
        RowPolicy::DeadLetter => "dead-letter",
    }
}
