//! Who holds a lease.

use std::{fs, process, time::SystemTime};

/// A process, in such a way that others on its machine can see whether it is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    /// The machine, since it was started, and the process numbers that count there; empty where that cannot be said.
    machine: String,
    process: u32,
    /// When that process started: numbers are used again.
    started: String,
    /// Which of the holds of that process it is.
    hold: String,
}

impl Holder {
    /// This process, for one hold.
    pub(super) fn this() -> Self {
        let process = process::id();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let started = started(process).unwrap_or_default();
        Self { machine: machine().unwrap_or_default(), process, started, hold: since.as_nanos().to_string() }
    }

    /// What is written. No two counts give the same.
    pub(super) fn text(&self, count: u64) -> String {
        let Self { machine, process, started, hold } = self;
        format!("{machine}\n{process}\n{started}\n{hold}\n{count}\n")
    }

    /// What was written; none if it is nothing of the kind.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut line = || lines.next().map(str::to_owned);
        let (machine, process) = (line()?, line()?.parse().ok()?);
        Some(Self { machine, process, started: line()?, hold: line()? })
    }

    /// Whether it is on this machine, and has ended. A process that this one may not see has not been seen to end.
    pub(super) fn has_gone(&self) -> bool {
        self.is_of_this_machine()
            && started(FIRST).is_some()
            && started(self.process).as_deref() != Some(&self.started)
    }

    /// Whether it is on this machine, and there.
    pub(super) fn is_here(&self) -> bool {
        self.is_of_this_machine() && started(self.process).as_deref() == Some(&self.started)
    }

    fn is_of_this_machine(&self) -> bool {
        machine().is_some_and(|machine| machine == self.machine)
    }
}

fn machine() -> Option<String> {
    let read = |path| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let (host, boot) = (read("/proc/sys/kernel/hostname")?, read("/proc/sys/kernel/random/boot_id")?);
    let processes = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{host} {boot} {}", processes.display()))
}

/// When a process of this machine started, in ticks since the machine did; none if there is no such process.
fn started(process: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program comes second, in parentheses, and may have anything in it.
    let (_, behind) = text.rsplit_once(')')?;
    let mut fields = behind.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    (!is_dead).then_some(fields.nth(STARTED)?.to_owned())
}

/// The process that is always there.
const FIRST: u32 = 1;
/// Where the start stands behind the state of the process.
const STARTED: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_here_and_one_with_another_start_has_gone() {
        let this = Holder::this();
        assert_eq!(Holder::parse(&this.text(7)), Some(this.clone()));
        assert!(this.is_here() && !this.has_gone());
        let earlier = Holder { started: "1".to_owned(), ..this.clone() };
        assert!(earlier.has_gone() && !earlier.is_here());
        let elsewhere = Holder { machine: "other".to_owned(), ..this };
        assert!(!elsewhere.has_gone() && !elsewhere.is_here());
        assert_eq!(Holder::parse("garbage"), None);
    }
}
