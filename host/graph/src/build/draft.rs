//! What is known of a node so far, and what its readers may ask of it.

use millstream_types::{Limits, Schema};

use super::wiring::{Wire, Wiring};
use crate::{
    InputPort, JobFile, JobSettings, NodeBody, OutputKind, RowPolicy, TrapPolicy,
    document::Spanned,
    job_file::{NodeTable, PartitionName, too_wide},
    nearest::suggestion,
    problem::{Problem, Problems},
};

/// A node as far as it is known.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) parallelism: u32,
    pub(super) inputs: Vec<InputPort>,
    /// None if not even the names are known.
    pub(super) ports: Option<Vec<PortDraft>>,
    /// None if something is wrong with it.
    pub(super) body: Option<NodeBody>,
    pub(super) on_trap: TrapPolicy,
    /// Positions of the columns by which rows are dealt out.
    pub(super) key: Option<Vec<usize>>,
    /// Whether it needs all rows of a key in one subtask.
    pub(super) keyed: bool,
    pub(super) partition: Option<Spanned<PartitionName>>,
    /// The source without event time from which it gets rows, if there is one.
    pub(super) timeless: Option<usize>,
    /// The time column of the main port, where watermarks are made behind it.
    pub(super) time_column: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct PortDraft {
    pub(super) name: String,
    pub(super) schema: Option<Schema>,
    pub(super) kind: OutputKind,
}

impl PortDraft {
    pub(super) fn data(name: impl Into<String>, schema: Option<Schema>) -> Self {
        Self { name: name.into(), schema, kind: OutputKind::Data }
    }

    pub(super) fn late(schema: Option<Schema>) -> Self {
        Self { name: LATE.to_owned(), schema, kind: OutputKind::Late }
    }

    pub(super) fn dead_letter() -> Self {
        let schema = Some(crate::dead_letter_schema());
        Self { name: DEAD_LETTER.to_owned(), schema, kind: OutputKind::DeadLetter }
    }
}

/// The drafts of all nodes by position in the file, with what they are made from.
pub(super) struct Drafts<'a> {
    pub(super) file: &'a JobFile,
    pub(super) wiring: &'a Wiring,
    drafts: Vec<Option<Draft>>,
}

impl<'a> Drafts<'a> {
    pub(super) fn new(file: &'a JobFile, wiring: &'a Wiring) -> Self {
        Self { file, wiring, drafts: file.nodes.iter().map(|_| None).collect() }
    }

    pub(super) fn set(&mut self, index: usize, draft: Draft) {
        self.drafts[index] = Some(draft);
    }

    pub(super) fn get(&self, index: usize) -> Option<&Draft> {
        self.drafts[index].as_ref()
    }

    pub(super) fn node(&self, index: usize) -> &'a NodeTable {
        &self.file.nodes[index]
    }

    pub(super) fn problems(&self) -> &'a Problems {
        &self.file.problems
    }

    /// The streams that a node reads.
    pub(super) fn wires_into(&self, index: usize) -> impl Iterator<Item = &'a Wire> + use<'a> {
        self.wiring.wires.iter().filter(move |w| w.to == index)
    }

    /// The streams that a node makes and that are read.
    pub(super) fn wires_out_of(&self, index: usize) -> impl Iterator<Item = &'a Wire> + use<'a> {
        self.wiring.wires.iter().filter(move |w| w.from == index)
    }

    /// The position of the port that a wire comes from, and the port.
    pub(super) fn port(&self, wire: &Wire) -> Option<(usize, &PortDraft)> {
        let ports = self.get(wire.from)?.ports.as_ref()?;
        let named = |name: &String| ports.iter().position(|p| p.name == *name);
        let index = wire.stream.value.port.as_ref().map_or(Some(0), named)?;
        ports.get(index).map(|port| (index, port))
    }

    /// The columns on a wire. That its port does not exist is reported here.
    pub(super) fn schema(&self, wire: &Wire) -> Option<&Schema> {
        let ports = self.get(wire.from)?.ports.as_ref()?;
        let Some((_, port)) = self.port(wire) else {
            self.report_port(wire, ports);
            return None;
        };
        port.schema.as_ref()
    }

    /// The source without event time that a wire's rows come from.
    pub(super) fn timeless(&self, wire: &Wire) -> Option<usize> {
        let draft = self.get(wire.from)?;
        let made_here = draft.time_column.is_some() && self.port(wire).is_some_and(|(index, _)| index == 0);
        if made_here { None } else { draft.timeless }
    }

    /// The parallelism of a node: its own, else the job's.
    pub(super) fn parallelism(&self, index: usize) -> u32 {
        let max = u32::from(self.file.settings.max_parallelism.groups());
        let Some(own) = &self.node(index).parallelism else { return self.file.settings.parallelism };
        if own.value > max {
            let message =
                format!("parallelism {} is more than the job's max-parallelism of {max}", own.value);
            let problem = Problem::error(message).at(&own.span, "too large");
            self.problems().push(problem.help(JobSettings::RAISE_MAX_PARALLELISM));
        } else if own.value > Limits::SUBTASKS {
            self.problems().push(too_wide(i64::from(own.value), &own.span));
        }
        own.value.min(max)
    }

    fn report_port(&self, wire: &Wire, ports: &[PortDraft]) {
        let node = self.node(wire.from);
        let name = &node.name.value;
        let Some(port) = &wire.stream.value.port else {
            let message = format!("the {} `{name}` has no output: nothing can read from it", node.kind());
            return self
                .problems()
                .push(Problem::error(message).at(&wire.stream.span, "nothing comes from here"));
        };
        let (message, help) = match port.as_str() {
            DEAD_LETTER if node.on_error().is_some_and(|p| p.value != RowPolicy::DeadLetter) => (
                format!("nothing comes out of `{name}.{DEAD_LETTER}`"),
                Some(format!("set `on-error = \"dead-letter\"` in [{}.{name}]", node.kind())),
            ),
            LATE => (
                format!("the {} `{name}` has no `{LATE}` port", node.kind()),
                Some("only operators with windows by event time have rows that come too late".to_owned()),
            ),
            _ => (
                format!("the {} `{name}` has no port `{port}`", node.kind()),
                suggestion(port, "its ports", ports.iter().map(|p| p.name.as_str())),
            ),
        };
        self.problems().push(Problem::error(message).at(&wire.stream.span, "not a port").maybe_help(help));
    }
}

pub(super) const LATE: &str = RESERVED_PORTS[0];
pub(super) const DEAD_LETTER: &str = RESERVED_PORTS[1];

/// Ports that nodes have beside their own.
pub(crate) const RESERVED_PORTS: [&str; 2] = ["late", "dead-letter"];
