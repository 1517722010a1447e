//! Process functions: every state and timer, on command of the rows; and two inputs.

use millstream::{
    Clock, Collector, Function, Input, ListState, MapState, Output, ProcessContext, Reject, State, Timer,
    ValueState,
};

use crate::rows::Number;

/// A command for the key's registers.
#[derive(Input)]
pub struct Command<'a> {
    /// What to do.
    pub command: &'a str,
    /// Which entry of the map.
    pub name: &'a str,
    /// With which number.
    pub n: i64,
}

/// What a command answered.
#[derive(Output, Debug, PartialEq)]
pub struct Answer {
    pub answer: String,
}

/// A timer that fired.
#[derive(Output, Debug, PartialEq)]
pub struct FiredTimer<'a> {
    pub key: &'a str,
    pub processing: bool,
    pub time: i64,
}

/// A state of columns.
#[derive(State, Clone, Default)]
#[state(version = 3)]
pub struct Pair {
    number: i64,
    text: Option<String>,
}

/// One state of each kind.
#[derive(Function)]
pub struct Registers {
    value: ValueState<Pair>,
    list: ListState<i64>,
    map: MapState<String, i64>,
}

/// Does what its rows say to its states and timers, and answers.
#[millstream::process(timers("event", "processing"))]
impl Registers {
    fn process(
        &mut self,
        key: &str,
        row: Command<'_>,
        ctx: &mut ProcessContext,
        out: &mut Collector<Answer>,
    ) -> Result<(), Reject> {
        match row.command {
            "set" => self.value.set(Pair { number: row.n, text: Some(row.name.to_owned()) }),
            "clear" => self.value.clear(),
            "add" => self.list.add(row.n),
            "replace" => self.list.set(vec![row.n]),
            "empty" => self.list.clear(),
            "put" => self.map.insert(&row.name.to_owned(), row.n),
            "remove" => self.map.remove(&row.name.to_owned()),
            "wipe" => self.map.clear(),
            "timer" => ctx.set_timer(row.n),
            "untimer" => ctx.clear_timer(row.n),
            "processing-timer" => ctx.set_processing_timer(row.n),
            "look" => {
                let answer = self.look(key, row.name, ctx.watermark());
                out.emit(Answer { answer });
            }
            other => return Err(Reject::new(format!("unknown command `{other}`"))),
        }
        Ok(())
    }

    fn on_timer(&mut self, key: &str, timer: Timer, fired: &mut Collector<FiredTimer<'_>>) {
        fired.emit(FiredTimer { key, processing: timer.clock == Clock::Processing, time: timer.time });
    }
}

impl Registers {
    fn look(&mut self, key: &str, name: &str, watermark: i64) -> String {
        let value = self.value.get().map(|pair| (pair.number, pair.text.clone().unwrap_or_default()));
        let entry = self.map.get(&name.to_owned()).copied();
        let map: Vec<_> = self.map.entries().map(|(name, n)| format!("{name}={n}")).collect();
        let list = self.list.get();
        format!("{key}@{watermark}: value {value:?}, list {list:?}, map [{}], entry {entry:?}", map.join(" "))
    }
}

/// Whether a row is a reminder.
#[derive(Output, Debug, PartialEq)]
pub struct Reminded {
    pub reminder: bool,
}

/// Sets timers and no state.
#[derive(Function)]
pub struct Reminder {}

/// Every row, and a reminder of its key when the time comes that it has as its number.
#[millstream::process(carry = "extend")]
impl Reminder {
    fn process(&mut self, _key: (), row: Number, ctx: &mut ProcessContext, out: &mut Collector<Reminded>) {
        ctx.set_timer(row.n);
        out.emit(Reminded { reminder: false });
    }

    fn on_timer(&mut self, _key: (), _timer: Timer, out: &mut Collector<Reminded>) {
        out.emit(Reminded { reminder: true });
    }
}

/// A row of the left input.
#[derive(Input)]
pub struct Left {
    pub n: i64,
}

/// A row of the right input.
#[derive(Input)]
pub struct Right<'a> {
    pub text: &'a str,
}

/// A left and a right row of the same key.
#[derive(Output, Debug, PartialEq)]
pub struct Match {
    pub n: i64,
    pub text: String,
}

/// Joins two inputs by key.
#[derive(Function)]
pub struct Matcher {
    lefts: ListState<i64>,
    rights: ListState<String>,
}

/// Emits every pair of a left and a right row with the same key.
#[millstream::process]
impl Matcher {
    #[input]
    fn left(&mut self, _key: (), row: Left, out: &mut Collector<Match>) {
        self.lefts.add(row.n);
        self.rights.get().iter().for_each(|text| out.emit(Match { n: row.n, text: text.clone() }));
    }

    #[input]
    fn right(&mut self, _key: (), row: Right<'_>, out: &mut Collector<Match>) {
        self.rights.add(row.text.to_owned());
        self.lefts.get().iter().for_each(|&n| out.emit(Match { n, text: row.text.to_owned() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing::{self, ProcessTest};

    fn run(
        test: &mut ProcessTest,
        commands: &[(&'static str, &'static str, &'static str, i64)],
    ) -> Vec<String> {
        let row = |&(key, command, name, n)| (key, Command { command, name, n });
        let results = test.rows(commands.iter().map(row).collect::<Vec<_>>());
        results.rows::<Answer>().into_iter().map(|answer| answer.answer).collect()
    }

    #[test]
    fn states_keep_what_is_written_whatever_the_batches() {
        let commands = [
            ("a", "set", "x", 1),
            ("b", "set", "y", 2),
            ("a", "add", "", 10),
            ("a", "add", "", 11),
            ("a", "put", "p", 100),
            ("a", "put", "o", 99),
            ("a", "look", "p", 0),
            ("b", "look", "p", 0),
            ("a", "clear", "", 0),
            ("a", "replace", "", 12),
            ("a", "remove", "o", 0),
            ("a", "add", "", 13),
            ("a", "look", "o", 0),
            ("a", "wipe", "", 0),
            ("a", "empty", "", 0),
            ("a", "put", "q", 7),
            ("a", "look", "q", 0),
        ];
        let expected = [
            "a@-9223372036854775808: value Some((1, \"x\")), list [10, 11], map [o=99 p=100], entry Some(100)",
            "b@-9223372036854775808: value Some((2, \"y\")), list [], map [], entry None",
            "a@-9223372036854775808: value None, list [12, 13], map [p=100], entry None",
            "a@-9223372036854775808: value None, list [], map [q=7], entry Some(7)",
        ];
        for batch in [1, 2, 3, 5, 100] {
            let mut test = testing::process::<Registers>().batches_of(batch);
            assert_eq!(run(&mut test, &commands), expected, "in batches of {batch}");
        }
    }

    #[test]
    fn maps_longer_than_a_scan_are_known_to_their_end() {
        let mut test = testing::process::<Registers>();
        let names: Vec<&'static str> = (0..1000).map(|n| &*format!("{n:04}").leak()).collect();
        let puts: Vec<_> = names.iter().zip(0..).map(|(name, n)| ("k", "put", *name, n)).collect();
        run(&mut test, &puts);
        let answers = run(&mut test, &[("k", "remove", "0500", 0), ("k", "look", "0999", 0)]);
        assert!(answers[0].ends_with("entry Some(999)"), "{answers:?}");
        assert!(answers[0].contains("0499=499 0501=501"), "{answers:?}");
    }

    #[test]
    fn a_batch_costs_a_call_a_state_and_not_one_a_row() {
        let mut test = testing::process::<Registers>();
        let commands: Vec<_> = (0..1000)
            .flat_map(|n| {
                [("a", "set", "x", n), ("b", "add", "", n), ("a", "look", "x", 0), ("c", "timer", "", n)]
            })
            .collect();
        run(&mut test, &commands);
        assert!(testing::host_calls() < 10, "{} calls", testing::host_calls());
    }

    #[test]
    fn unknown_commands_are_refused() {
        let mut test = testing::process::<Registers>();
        let results = test.rows([("a", Command { command: "fly", name: "", n: 0 })]);
        assert_eq!(results.rejected(), [(0, "unknown command `fly`")]);
    }

    #[test]
    fn timers_fire_in_order_and_on_their_clock() {
        let mut test = testing::process::<Registers>();
        let commands = [
            ("a", "timer", "", 20),
            ("a", "timer", "", 10),
            ("b", "timer", "", 15),
            ("b", "untimer", "", 15),
            ("b", "processing-timer", "", 12),
        ];
        run(&mut test, &commands);
        let fired = |key, processing, time| FiredTimer { key, processing, time };
        assert_eq!(
            test.watermark(20).side::<FiredTimer<'_>>("fired"),
            [fired("a", false, 10), fired("a", false, 20)]
        );
        assert_eq!(test.processing_time(12).side::<FiredTimer<'_>>("fired"), [fired("b", true, 12)]);
    }

    #[test]
    fn two_inputs_meet_in_state() {
        let mut test = testing::process::<Matcher>();
        test.rows_on("left", [("a", Left { n: 1 }), ("b", Left { n: 2 })]);
        let results = test.rows_on("right", [("b", Right { text: "x" }), ("c", Right { text: "y" })]);
        assert_eq!(results.rows::<Match>(), [Match { n: 2, text: "x".to_owned() }]);
    }
}
