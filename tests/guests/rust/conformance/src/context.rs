//! Map functions that talk to the host: parameters, log, metrics, time and chance.

use millstream::{Context, Output, Parameters, TaskInfo, info};

use crate::rows::Number;

/// Parameters of every type.
#[derive(Parameters)]
pub struct Settings {
    /// Has to be given.
    required: i64,
    #[parameter(default = true)]
    flag: bool,
    #[parameter(default = -3)]
    int32: i32,
    #[parameter(default = 1.5)]
    float64: f64,
    #[parameter(default = "text")]
    text: String,
}

/// The parameters as they were read.
#[derive(Output, Debug, PartialEq)]
pub struct Configured {
    pub settings: String,
}

/// Emits its parameters.
#[millstream::map]
pub fn configured(_row: (), settings: &Settings) -> Configured {
    let Settings { required, flag, int32, float64, text } = settings;
    Configured { settings: format!("{required} {flag} {int32} {float64} {text}") }
}

/// Time and chance.
#[derive(Output, Debug, PartialEq)]
pub struct Drawn {
    pub now: i64,
    pub random: i64,
}

/// Emits the time and a random number.
#[millstream::map]
pub fn chance(_row: (), ctx: &Context) -> Drawn {
    Drawn { now: ctx.now(), random: ctx.random() as i64 }
}

/// Where a function runs.
#[derive(Output, Debug, PartialEq)]
pub struct Place {
    pub place: String,
}

/// Emits the job, the operator and the subtask.
#[millstream::map]
pub fn place(_row: (), ctx: &Context) -> Place {
    let TaskInfo { job, operator, subtask, parallelism, attempt } = ctx.task();
    Place { place: format!("{job} {operator}[{subtask}] of {parallelism}, attempt {attempt}") }
}

/// Logs each number, counts it and sets a gauge to it.
#[millstream::map]
pub fn measured(row: Number, ctx: &Context) -> bool {
    info!("number {}", row.n);
    ctx.count("numbers", 1);
    ctx.gauge("last_number", row.n as f64);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::{Level, testing};

    #[test]
    fn parameters_have_defaults_and_types() {
        let results = testing::map::<configured>().parameter("required", "7").run([()]);
        let settings = "7 true -3 1.5 text".to_owned();
        assert_eq!(results.rows::<Configured>(), [Configured { settings }]);
    }

    #[test]
    fn wrong_parameters_do_not_open() {
        let missing = "parameter `required` is missing: expected a value of type int64 in the job file";
        assert_eq!(testing::open::<configured>(&[]), Err(missing.to_owned()));
        let wrong = "parameter `flag`: found `yes`, expected boolean";
        assert_eq!(testing::open::<configured>(&[("required", "1"), ("flag", "yes")]), Err(wrong.to_owned()));
    }

    #[test]
    fn metrics_cross_the_boundary_once_a_call() {
        testing::map::<measured>().run([1, 2, 3].map(|n| Number { n }));
        assert_eq!((testing::count("numbers"), testing::gauge("last_number")), (3, Some(3.0)));
        assert_eq!(testing::logs()[2], (Level::Info, "number 3".to_owned()));
        assert_eq!(testing::host_calls(), 3 + 2);
    }

    #[test]
    fn chance_differs_by_row_and_time_does_not() {
        let results = testing::map::<chance>().run([(), ()]);
        let drawn = results.rows::<Drawn>();
        assert_eq!(drawn[0].now, drawn[1].now);
        assert_ne!(drawn[0].random, drawn[1].random);
    }
}
