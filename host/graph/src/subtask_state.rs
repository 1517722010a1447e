//! The life of one execution of a subtask.
//!
//! ```text
//! created -> scheduled -> deploying -> initializing -> running -> finished
//!    |           |            |              |            |
//!    +-----------+            +--------------+------------+--> cancelling -> cancelled
//!    v                                                              |
//! cancelled          failed <------ any state but the last three <--+
//! ```
//!
//! What has not been deployed is cancelled at once, as nobody has to be asked. A subtask that ends while it is being
//! cancelled counts as cancelled. A new attempt is a new execution, so nothing leads out of the three last states.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where an execution of a subtask stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum SubtaskState {
    /// Planned.
    Created = 0,
    /// Waits for a slot.
    Scheduled = 1,
    /// On its way to its slot.
    Deploying = 2,
    /// Opens its operators and restores their state.
    Initializing = 3,
    /// Processes rows.
    Running = 4,
    /// Came to the end of its input.
    Finished = 5,
    /// Told to stop.
    Cancelling = 6,
    /// Stopped because it was told to.
    Cancelled = 7,
    /// Stopped because of an error.
    Failed = 8,
}

/// A step that no execution takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a subtask that is {from} cannot become {to}")]
pub struct IllegalTransition {
    /// Where it stands.
    pub from: SubtaskState,
    /// Where it was to go.
    pub to: SubtaskState,
}

impl SubtaskState {
    /// Every state, in order.
    pub const ALL: [SubtaskState; 9] = [
        SubtaskState::Created,
        SubtaskState::Scheduled,
        SubtaskState::Deploying,
        SubtaskState::Initializing,
        SubtaskState::Running,
        SubtaskState::Finished,
        SubtaskState::Cancelling,
        SubtaskState::Cancelled,
        SubtaskState::Failed,
    ];

    /// The states that may follow.
    pub fn successors(self) -> &'static [SubtaskState] {
        use SubtaskState::*;
        match self {
            Created => &[Scheduled, Cancelled, Failed],
            Scheduled => &[Deploying, Cancelled, Failed],
            Deploying => &[Initializing, Cancelling, Failed],
            Initializing => &[Running, Cancelling, Failed],
            Running => &[Finished, Cancelling, Failed],
            Cancelling => &[Cancelled, Failed],
            Finished | Cancelled | Failed => &[],
        }
    }

    /// Takes a step, if it is a legal one.
    pub fn transition(self, to: SubtaskState) -> Result<SubtaskState, IllegalTransition> {
        if self.successors().contains(&to) { Ok(to) } else { Err(IllegalTransition { from: self, to }) }
    }

    /// Whether nothing follows.
    pub fn is_terminal(self) -> bool {
        self.successors().is_empty()
    }

    /// The name that messages and the API use.
    pub fn name(self) -> &'static str {
        match self {
            SubtaskState::Created => "created",
            SubtaskState::Scheduled => "scheduled",
            SubtaskState::Deploying => "deploying",
            SubtaskState::Initializing => "initializing",
            SubtaskState::Running => "running",
            SubtaskState::Finished => "finished",
            SubtaskState::Cancelling => "cancelling",
            SubtaskState::Cancelled => "cancelled",
            SubtaskState::Failed => "failed",
        }
    }
}

impl fmt::Display for SubtaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{IllegalTransition, SubtaskState};

    #[test]
    fn the_table_of_legal_steps() {
        let legal = |from: SubtaskState| {
            SubtaskState::ALL.map(|to| if from.transition(to).is_ok() { 'x' } else { '.' })
        };
        let table =
            SubtaskState::ALL.map(|from| format!("{from:<13}{}\n", String::from_iter(legal(from)))).concat();
        expect_test::expect![[r#"
            created      .x.....xx
            scheduled    ..x....xx
            deploying    ...x..x.x
            initializing ....x.x.x
            running      .....xx.x
            finished     .........
            cancelling   .......xx
            cancelled    .........
            failed       .........
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn every_state_can_be_reached_and_every_life_ends() {
        let mut reached = vec![SubtaskState::Created];
        let mut next = 0;
        while let Some(state) = reached.get(next).copied() {
            let new: Vec<_> = state.successors().iter().filter(|s| !reached.contains(s)).copied().collect();
            reached.extend(new);
            next += 1;
        }
        assert_eq!(reached.len(), SubtaskState::ALL.len());
        assert!(
            SubtaskState::ALL
                .iter()
                .all(|s| s.is_terminal() || s.successors().contains(&SubtaskState::Failed))
        );
    }

    #[test]
    fn an_illegal_step_names_both_states() {
        let error = SubtaskState::Finished.transition(SubtaskState::Running).expect_err("illegal");
        assert_eq!(error, IllegalTransition { from: SubtaskState::Finished, to: SubtaskState::Running });
        assert_eq!(error.to_string(), "a subtask that is finished cannot become running");
    }
}
