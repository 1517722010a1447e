//! The watermark valve: one event time out of many channels.
//!
//! Each channel is *active*, *idle* or *finished*. The watermark is the minimum over the active ones; idle ones do
//! not count, finished ones count as the end of time. It is derived anew at every change and never goes back: a
//! channel that comes back behind the watermark holds it where it is until it has caught up.
//!
//! ```text
//!            Idle                EndOfInput
//!   active ────────▶ idle    any ──────────▶ finished
//!          ◀────────
//!   Active, a batch or a watermark
//! ```
//!
//! With no channel active but not all finished, the output is idle; with all finished it has ended.

use millstream_types::{MAX_WATERMARK, MIN_WATERMARK};

/// What a change on one channel means for the output, in the order in which it is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValveEvents {
    /// The output has become idle (`true`) or active (`false`).
    pub idle: Option<bool>,
    /// Event time has moved on.
    pub watermark: Option<i64>,
    /// All channels have finished; the watermark of the end of time came with or before it.
    pub ended: bool,
}

/// Derives the watermark and the status of a stream from those of its channels.
#[derive(Clone, Debug)]
pub struct Valve {
    channels: Vec<Channel>,
    watermark: i64,
    idle: bool,
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    watermark: i64,
    status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Active,
    Idle,
    Finished,
}

impl Valve {
    /// A valve of `channels` active channels of which nothing is known.
    pub fn new(channels: usize) -> Self {
        let channel = Channel { watermark: MIN_WATERMARK, status: Status::Active };
        Self { channels: vec![channel; channels], watermark: MIN_WATERMARK, idle: false, ended: false }
    }

    /// The current watermark.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// Whether all channels have finished.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// A channel's event time has reached `watermark`. One that goes back is ignored.
    pub fn handle_watermark(&mut self, channel: usize, watermark: i64) -> ValveEvents {
        let entry = &mut self.channels[channel];
        if entry.status == Status::Finished {
            return ValveEvents::default();
        }
        entry.status = Status::Active;
        entry.watermark = entry.watermark.max(watermark);
        self.derive()
    }

    /// A channel has sent rows, or says that it will.
    pub fn handle_active(&mut self, channel: usize) -> ValveEvents {
        match self.channels[channel].status {
            Status::Idle => {
                self.channels[channel].status = Status::Active;
                self.derive()
            }
            Status::Active | Status::Finished => ValveEvents::default(),
        }
    }

    /// A channel sends nothing for now.
    pub fn handle_idle(&mut self, channel: usize) -> ValveEvents {
        if self.channels[channel].status == Status::Finished {
            return ValveEvents::default();
        }
        self.channels[channel].status = Status::Idle;
        self.derive()
    }

    /// A channel has ended.
    pub fn handle_end(&mut self, channel: usize) -> ValveEvents {
        self.channels[channel] = Channel { watermark: MAX_WATERMARK, status: Status::Finished };
        self.derive()
    }

    fn derive(&mut self) -> ValveEvents {
        let mut events = ValveEvents::default();
        let all_finished = self.channels.iter().all(|c| c.status == Status::Finished);
        let active = self.channels.iter().filter(|c| c.status == Status::Active);
        let lowest = active.map(|c| c.watermark).min();
        let idle = lowest.is_none() && !all_finished;
        if idle != self.idle {
            self.idle = idle;
            events.idle = Some(idle);
        }
        let reached = if all_finished { Some(MAX_WATERMARK) } else { lowest };
        if let Some(reached) = reached.filter(|r| *r > self.watermark) {
            self.watermark = reached;
            events.watermark = Some(reached);
        }
        if all_finished && !self.ended {
            self.ended = true;
            events.ended = true;
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a script such as `0:5 1:7 1~ 0. 1+` on two channels and writes down what comes out.
    /// `c:n` watermark, `c~` idle, `c+` active, `c.` end.
    fn run(script: &str) -> String {
        let mut valve = Valve::new(2);
        let step = |word: &str| {
            let channel = usize::from(word.as_bytes()[0] - b'0');
            let events = match &word[1..2] {
                ":" => valve.handle_watermark(channel, word[2..].parse().expect("a number")),
                "~" => valve.handle_idle(channel),
                "+" => valve.handle_active(channel),
                _ => valve.handle_end(channel),
            };
            let idle = events.idle.map(|i| if i { "idle " } else { "active " }).unwrap_or_default();
            let mark = match events.watermark {
                Some(MAX_WATERMARK) => "max ".to_owned(),
                Some(w) => format!("{w} "),
                None => String::new(),
            };
            format!("{idle}{mark}{}", if events.ended { "end" } else { "" }).trim().to_owned()
        };
        script.split(' ').map(step).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn the_slowest_active_channel_decides() {
        assert_eq!(run("0:5 1:3 1:9 0:4 0:7"), "|3|5||7");
    }

    #[test]
    fn an_idle_channel_does_not_count_and_holds_when_it_is_back_behind() {
        assert_eq!(run("0:5 1~ 0:8 1+ 0:9 1:6 1:10"), "|5|8||||9");
    }

    #[test]
    fn all_idle_is_idle_and_the_watermark_stays() {
        assert_eq!(run("0:5 1:5 0~ 1~ 1:7 0+"), "|5||idle|active 7|");
    }

    #[test]
    fn a_finished_channel_is_at_the_end_of_time() {
        assert_eq!(run("0:5 1. 0:6 0."), "|5|6|max end");
        assert_eq!(run("0~ 1. 0+ 0."), "|idle|active|max end");
    }

    proptest! {
        #[test]
        fn never_backwards_and_never_beyond_an_active_channel(
            steps in proptest::collection::vec((0usize..3, 0u8..4, -50i64..50), 0..200)
        ) {
            let mut valve = Valve::new(3);
            let mut marks = [MIN_WATERMARK; 3];
            let mut last = MIN_WATERMARK;
            for (channel, kind, value) in steps {
                let events = match kind {
                    0 => { marks[channel] = marks[channel].max(value); valve.handle_watermark(channel, value) }
                    1 => valve.handle_idle(channel),
                    2 => valve.handle_active(channel),
                    _ => { marks[channel] = MAX_WATERMARK; valve.handle_end(channel) }
                };
                if let Some(mark) = events.watermark {
                    prop_assert!(mark > last);
                    last = mark;
                    let active = valve.channels.iter().zip(marks).filter(|(c, _)| c.status == Status::Active);
                    prop_assert!(active.into_iter().all(|(_, m)| mark <= m));
                }
            }
        }
    }
}
