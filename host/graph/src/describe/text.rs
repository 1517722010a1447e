//! The text of a plan.

use std::fmt::{self, Display, Formatter};

use super::{
    ColumnDescription, ExchangeDescription, NodeDescription, PlanDescription, ReadDescription,
    TimeDescription, WindowDescription,
};

impl Display for PlanDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { job, parallelism, slots, tasks, .. } = self;
        writeln!(
            f,
            "job {job}: parallelism {parallelism}, {}, {}",
            count(*slots as usize, "slot"),
            count(tasks.len(), "task")
        )?;
        if let Some(state) = &self.state {
            writeln!(f, "state in {} with {} MB of memory", state.backend, state.memory / 1_000_000)?;
        }
        for (i, task) in tasks.iter().enumerate() {
            writeln!(f, "\ntask {} x{}: {}", i + 1, task.parallelism, task.name)?;
            for node in &task.nodes {
                node.fmt(f)?;
            }
            for exchange in self.exchanges.iter().filter(|e| e.from_task == i) {
                exchange.fmt(f)?;
            }
        }
        Ok(())
    }
}

impl Display for NodeDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = self.function.as_ref().or(self.connector.as_ref());
        let what = what.map(|what| format!(" {what}")).unwrap_or_default();
        writeln!(f, "  {}: {}{what}", self.name, self.kind)?;
        let id = (self.id != self.name).then(|| self.id.clone());
        line(f, "id", id)?;
        line(f, "from", some(&self.inputs).map(|inputs| inputs.join(", ")))?;
        line(
            f,
            "key",
            self.key.as_ref().map(|key| {
                if key.is_empty() { "one for the whole stream".to_owned() } else { key.join(", ") }
            }),
        )?;
        line(f, "window", self.window.as_ref().map(WindowDescription::to_string))?;
        line(f, "time", self.time.as_ref().map(TimeDescription::to_string))?;
        line(f, "reads", some(&self.reads).map(list))?;
        let parameters: Vec<_> =
            self.parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        line(f, "set", some(&parameters).map(list))?;
        line(f, "allow", some(&self.allow).map(list))?;
        let policies =
            [("error", self.on_error.as_ref().filter(|p| *p != "fail")), ("trap", self.on_trap.as_ref())];
        for (what, policy) in policies {
            line(f, &format!("on {what}"), policy.cloned())?;
        }
        for (i, output) in self.outputs.iter().enumerate() {
            let name = if i == 0 { "out".to_owned() } else { format!("out {}", output.port) };
            line(f, &name, Some(list(&output.columns)))?;
        }
        Ok(())
    }
}

impl Display for ExchangeDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let key = some(&self.key).map(|key| format!(" ({})", key.join(", "))).unwrap_or_default();
        let (from, port, to, by) = (&self.from_node, &self.from_port, self.to_task + 1, &self.partitioning);
        let channels = count(self.channels, "channel");
        writeln!(f, "  {from}.{port} to task {to}, {}: {by}{key}, {channels}", self.to_node)
    }
}

impl Display for ReadDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.type_text)?;
        if self.column != self.name {
            write!(f, " = {}", self.column)?;
        }
        if let Some(from) = &self.widened_from {
            write!(f, " (from {from})")?;
        }
        f.write_str(if self.reject_null { " (rejects null)" } else { "" })
    }
}

impl Display for ColumnDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.type_text)
    }
}

impl Display for WindowDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        for (word, span) in [("", &self.size), (" every", &self.slide), (" offset", &self.offset)] {
            if let Some(span) = span {
                write!(f, "{word} {span}")?;
            }
        }
        write!(f, " of {} time", self.clock)?;
        if self.trigger != format!("{}-time", self.clock) {
            write!(f, ", fires by {}", self.trigger)?;
        } else if self.kind == "global" {
            f.write_str(", fires at the end of the input")?;
        }
        if self.lateness != "0ms" {
            write!(f, ", lateness {}", self.lateness)?;
        }
        f.write_str(if self.purge { ", purges" } else { "" })
    }
}

impl Display for TimeDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}, out of order by {}", self.column, self.out_of_orderness)?;
        if let Some(idle) = &self.idle {
            write!(f, ", idle after {idle}")?;
        }
        match self.alignment.as_deref() {
            None => Ok(()),
            Some("off") => f.write_str(", not aligned"),
            Some(drift) => write!(f, ", aligned within {drift}"),
        }?;
        match &self.alignment_group {
            None => Ok(()),
            Some(group) => write!(f, " of group {group}"),
        }
    }
}

fn line(f: &mut Formatter<'_>, name: &str, text: Option<String>) -> fmt::Result {
    match text {
        Some(text) => writeln!(f, "    {name:<8} {text}"),
        None => Ok(()),
    }
}

fn list<T: Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn some<T>(items: &[T]) -> Option<&[T]> {
    (!items.is_empty()).then_some(items)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
