//! Whether and when a job that has failed is started again.
//!
//! Time is the caller's: any monotonic clock, as the duration since some moment.

use std::{collections::VecDeque, time::Duration};

/// How often a job may fail, and how long it then waits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RestartStrategy {
    /// It is not started again.
    #[default]
    None,
    /// It is started again after a while, up to so many times.
    FixedDelay {
        /// How many times.
        attempts: u32,
        /// How long it waits.
        delay: Duration,
    },
    /// It is started again after a while that grows from failure to failure, for ever.
    ExponentialDelay {
        /// How long it waits the first time.
        initial: Duration,
        /// How long it waits at most.
        max: Duration,
        /// What the wait is multiplied with at each failure.
        multiplier: f64,
        /// After how long without a failure the wait is the first one again.
        reset_after: Duration,
    },
    /// It is started again after a while, unless it fails more than so many times within a span.
    FailureRate {
        /// How many times.
        failures: u32,
        /// The span.
        interval: Duration,
        /// How long it waits.
        delay: Duration,
    },
}

/// What becomes of a job that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// It is started again after this time.
    After(Duration),
    /// It stays as it is.
    GiveUp,
}

/// Decides about the failures of one job.
#[derive(Clone, Debug)]
pub struct Restarts {
    strategy: RestartStrategy,
    /// When it failed: all times that still count.
    failures: VecDeque<Duration>,
    /// When it was started last, by its own decision.
    started: Duration,
    /// How long it waited last.
    waited: Duration,
}

impl Restarts {
    /// A job that has just been started for the first time.
    pub fn new(strategy: RestartStrategy, now: Duration) -> Self {
        Self { strategy, failures: VecDeque::new(), started: now, waited: Duration::ZERO }
    }

    /// The job has failed.
    pub fn handle_failure(&mut self, now: Duration) -> RestartDecision {
        self.failures.push_back(now);
        let decision = self.decide(now);
        if let RestartDecision::After(delay) = decision {
            self.started = now + delay;
            self.waited = delay;
        }
        decision
    }

    fn decide(&mut self, now: Duration) -> RestartDecision {
        match self.strategy {
            RestartStrategy::None => RestartDecision::GiveUp,
            RestartStrategy::FixedDelay { attempts, delay } => {
                after(self.failures.len() <= attempts as usize, delay)
            }
            RestartStrategy::ExponentialDelay { initial, max, multiplier, reset_after } => {
                let first = self.failures.len() == 1 || now.saturating_sub(self.started) >= reset_after;
                self.failures.truncate(1);
                let longer = self.waited.mul_f64(multiplier.max(1.0));
                after(true, if first { initial } else { longer }.min(max))
            }
            RestartStrategy::FailureRate { failures, interval, delay } => {
                self.failures.retain(|&failed| failed + interval > now);
                after(self.failures.len() <= failures as usize, delay)
            }
        }
    }
}

fn after(again: bool, delay: Duration) -> RestartDecision {
    if again { RestartDecision::After(delay) } else { RestartDecision::GiveUp }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What is decided when a job fails at these seconds: how long it waits, or `-`.
    fn decisions(strategy: RestartStrategy, failures: &[u32]) -> String {
        let mut restarts = Restarts::new(strategy, Duration::ZERO);
        let decide = |&at: &u32| match restarts.handle_failure(at * SECOND) {
            RestartDecision::After(delay) => delay.as_secs_f64().to_string(),
            RestartDecision::GiveUp => "-".to_owned(),
        };
        failures.iter().map(decide).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_job_without_a_strategy_stays_failed() {
        assert_eq!(decisions(RestartStrategy::None, &[1]), "-");
    }

    #[test]
    fn a_fixed_number_of_attempts() {
        let strategy = RestartStrategy::FixedDelay { attempts: 2, delay: 3 * SECOND };
        assert_eq!(decisions(strategy, &[1, 100, 1000]), "3 3 -");
    }

    #[test]
    fn waits_grow_to_a_limit_and_are_short_again_after_a_while_without_failure() {
        let strategy = RestartStrategy::ExponentialDelay {
            initial: SECOND,
            max: 5 * SECOND,
            multiplier: 2.0,
            reset_after: 60 * SECOND,
        };
        assert_eq!(decisions(strategy, &[0, 1, 3, 8, 20, 100, 102]), "1 2 4 5 5 1 2");
    }

    #[test]
    fn failures_within_a_span_count_and_older_ones_do_not() {
        let strategy = RestartStrategy::FailureRate { failures: 2, interval: 10 * SECOND, delay: SECOND };
        assert_eq!(decisions(strategy, &[0, 5, 11, 16, 17]), "1 1 1 1 -");
    }
}
