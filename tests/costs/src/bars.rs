//! The bars: what each part cost when that was last accepted, and how much more it may cost.
//!
//! They stand in `costs.toml`. Allocations are the same at each count, so that their margin only covers a compiler that
//! leaves one out. Instructions depend on the compiler, and a little on the seeds of hash tables and on addresses.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

use crate::{Counts, Part};

/// What `costs.toml` holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bars {
    /// The compiler with which instructions were counted, as it calls itself.
    pub compiler: String,
    /// The costs of each part.
    pub parts: BTreeMap<String, Bar>,
}

/// What a part may cost.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// Instructions of a unit.
    pub instructions: f64,
    /// Allocations of a step.
    pub allocations: f64,
    /// Bytes allocated for a unit.
    pub bytes: f64,
}

/// A part that costs more than it may, or that no bar is known for.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// The part.
    pub part: &'static str,
    /// What was counted, as in `instructions a row`.
    pub figure: String,
    /// What the bar says; none if there is none.
    pub was: Option<f64>,
    /// What it is now.
    pub is: f64,
    /// How much more than the bar it may be, in hundredths.
    pub margin: f64,
}

impl fmt::Display for Regression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, figure, was, is, margin } = self;
        match was {
            None => write!(f, "{part}: {figure}: no bar, is {is:.2}"),
            Some(was) => {
                let more = (is / was - 1.0) * 100.0;
                write!(f, "{part}: {figure}: was {was:.2}, is {is:.2} ({more:+.1} %, may be {margin:+} %)")
            }
        }
    }
}

impl Bars {
    /// Reads `costs.toml`.
    ///
    /// # Errors
    /// If it is not as [`Bars::write`] makes it.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The text of `costs.toml`.
    pub fn write(compiler: &str, counted: &[(Part, Counts)]) -> String {
        let mut text = format!("{HEAD}compiler = \"{compiler}\"\n");
        for (part, counts) in counted {
            text += &format!(
                "\n[parts.\"{}\"] # a step is {} {}\ninstructions = {:.2}\nallocations = {:.3}\nbytes = {:.3}\n",
                part.name,
                part.units,
                if part.units == 1 { part.unit.to_owned() } else { format!("{}s", part.unit) },
                counts.instructions.unwrap_or_default(),
                counts.allocations,
                counts.bytes,
            );
        }
        text
    }

    /// The figures of a part that are above their bars.
    pub fn regressions(&self, part: &Part, counts: &Counts, compiler: &str) -> Vec<Regression> {
        let bar = self.parts.get(part.name);
        let instructions_margin = if compiler == self.compiler { INSTRUCTIONS } else { OTHER_COMPILER };
        let mut found = Vec::new();
        let mut check = |figure: String, was: Option<f64>, is: f64, margin: f64| {
            // What is counted as nothing may not become something.
            if was.is_none_or(|was| is > was * (1.0 + margin / 100.0) + ROUNDING) {
                found.push(Regression { part: part.name, figure, was, is, margin });
            }
        };
        if let Some(instructions) = counts.instructions {
            let figure = format!("instructions a {}", part.unit);
            check(figure, bar.map(|b| b.instructions), instructions, instructions_margin);
        }
        check("allocations a step".to_owned(), bar.map(|b| b.allocations), counts.allocations, ALLOCATIONS);
        check(format!("bytes allocated a {}", part.unit), bar.map(|b| b.bytes), counts.bytes, BYTES);
        found
    }
}

const HEAD: &str = "\
# What the inner parts cost: instructions a unit (host and guest), allocations a step, bytes allocated a unit.
# Counted of our crates in a profile like that of a release, with dependencies in the dev profile.
# `cargo xtask costs` fails when a part costs more; `cargo xtask costs --accept` writes this file.
";

/// Hundredths that instructions may be above their bar.
const INSTRUCTIONS: f64 = 3.0;
/// The same under another compiler than the one of the bars.
const OTHER_COMPILER: f64 = 20.0;
/// Hundredths that the number of allocations may be above its bar.
const ALLOCATIONS: f64 = 1.0;
/// Hundredths that allocated bytes may be above their bar.
const BYTES: f64 = 2.0;
/// Figures have so few digits in the file.
const ROUNDING: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PARTS, Work, allocations};

    fn bars(counts: Counts) -> Bars {
        Bars::parse(&Bars::write("rustc 1", &[(PARTS[0], counts)])).expect("what it writes it reads")
    }

    const COUNTS: Counts = Counts { allocations: 10.0, bytes: 100.0, instructions: Some(1000.0) };

    #[test]
    fn what_costs_as_much_or_less_passes() {
        let within = Counts { allocations: 10.1, bytes: 102.0, instructions: Some(1030.0) };
        let less = Counts { allocations: 1.0, bytes: 1.0, instructions: Some(1.0) };
        for counts in [COUNTS, within, less] {
            assert_eq!(bars(COUNTS).regressions(&PARTS[0], &counts, "rustc 1"), []);
        }
    }

    #[test]
    fn what_costs_more_is_named_with_both_figures() {
        let more = Counts { allocations: 11.0, bytes: 103.0, instructions: Some(1100.0) };
        let found = bars(COUNTS).regressions(&PARTS[0], &more, "rustc 1");
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = [
            "guest call: instructions a call: was 1000.00, is 1100.00 (+10.0 %, may be +3 %)",
            "guest call: allocations a step: was 10.00, is 11.00 (+10.0 %, may be +1 %)",
            "guest call: bytes allocated a call: was 100.00, is 103.00 (+3.0 %, may be +2 %)",
        ];
        assert_eq!(text, expected);
        let other = bars(COUNTS).regressions(&PARTS[0], &more, "rustc 2");
        assert_eq!(other, found[1..], "another compiler makes other instructions, not other allocations");
    }

    #[test]
    fn a_part_without_a_bar_is_a_regression() {
        let found = bars(COUNTS).regressions(&PARTS[1], &COUNTS, "rustc 1");
        assert_eq!(found.len(), 3);
        assert!(found[0].to_string().ends_with("no bar, is 1000.00"), "{}", found[0]);
    }

    /// The gate as a whole: one allocation more a step is found, and nothing is when nothing has changed.
    #[test]
    fn one_allocation_more_a_step_is_found() {
        let part = window_add();
        let bars = Bars::parse(&Bars::write("rustc 1", &[(part, allocations(&part))])).expect("a file");
        assert_eq!(bars.regressions(&part, &allocations(&part), "rustc 1"), []);
        let wasteful = part.prepared_by(|| Box::new(Wasteful(window_add().prepare())));
        let found = bars.regressions(&part, &allocations(&wasteful), "rustc 1");
        let figures: Vec<&str> = found.iter().map(|r| r.figure.as_str()).collect();
        assert_eq!(figures, ["allocations a step"], "{found:?}");
    }

    fn window_add() -> Part {
        *PARTS.iter().find(|part| part.name == "window add").expect("one of them")
    }

    /// Allocates a byte for each step of its part.
    struct Wasteful(Box<dyn Work>);

    impl Work for Wasteful {
        fn run(&mut self, steps: u64) {
            for _ in 0..steps {
                std::hint::black_box(Box::new(1u8));
                self.0.run(1);
            }
        }
    }
}
