//! Distributions of generated values, and what a job file says of them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringViewArray};
use serde::Deserialize;
use serde_json::{Number, Value};

use crate::{
    file::parse_timestamp,
    mix::{below, mix},
    options::{OptionsError, TextDuration},
};

/// What a job file says of one field.
pub(crate) struct FieldOptions {
    /// `null`: the share of records without a value.
    pub(crate) null: f64,
    /// The rest: the distribution.
    pub(crate) distribution: Value,
}

impl FieldOptions {
    /// Takes out what every field may have.
    pub(crate) fn split(options: &Value) -> Result<Self, OptionsError> {
        let mut distribution = options.clone();
        let null = distribution.as_object_mut().and_then(|table| table.remove("null"));
        let null = match null {
            None => 0.0,
            Some(null) => null.as_f64().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
                OptionsError::at(
                    "null",
                    format!("found `{null}`, expected the share of records without a value, from 0 to 1"),
                )
            })?,
        };
        Ok(Self { null, distribution })
    }
}

/// A distribution as a job file has it.
#[derive(Deserialize)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub(crate) enum DistributionOptions {
    /// `start + step * i`.
    Sequence {
        #[serde(default)]
        start: i64,
        #[serde(default = "one")]
        step: i64,
    },
    /// From `min` to `max`, both included for integers.
    Uniform { min: Number, max: Number },
    /// 0 to `keys - 1`; k comes with a share of `1 / (k + 1) ^ exponent`.
    Zipf {
        keys: u64,
        #[serde(default = "one_float")]
        exponent: f64,
    },
    /// 0 to `keys - 1`, of which the first `hot-keys` have `hot-share` of the records between them.
    Hot { keys: u64, hot_keys: u64, hot_share: f64 },
    /// One of `values`, by `weights`.
    Choice { values: Vec<Value>, weights: Option<Vec<f64>> },
    /// Lower case letters.
    Text { min_length: usize, max_length: usize },
    /// `start + step * i`, up to `jitter` earlier.
    Time { start: String, step: TextDuration, jitter: Option<TextDuration> },
}

fn one() -> i64 {
    1
}

fn one_float() -> f64 {
    1.0
}

/// A checked distribution.
pub(crate) enum Distribution {
    Integers(Integers),
    Floats { min: f64, max: f64 },
    Times(Times),
    Choice { values: ArrayRef, weights: Weights },
    Text { min: usize, max: usize },
}

/// Most different keys of a Zipf distribution, whose shares are kept in a table, and most values of a choice.
const MOST_SHARES: u64 = 1_000_000;
/// Longest generated text.
const MOST_LETTERS: usize = 1 << 20;

impl Distribution {
    pub(crate) fn new(options: DistributionOptions) -> Result<Self, OptionsError> {
        Ok(match options {
            DistributionOptions::Sequence { start, step } => {
                Distribution::Integers(Integers::Sequence { start, step })
            }
            DistributionOptions::Uniform { min, max } => uniform(&min, &max)?,
            DistributionOptions::Zipf { keys, exponent } => {
                check((1..=MOST_SHARES).contains(&keys), "keys", keys, "1 to 1000000 keys")?;
                check(exponent.is_finite() && exponent >= 0.0, "exponent", exponent, "a number from 0 on")?;
                let shares = (1..=keys).map(|k| (k as f64).powf(-exponent));
                Distribution::Integers(Integers::Zipf(Weights::new(shares)))
            }
            DistributionOptions::Hot { keys, hot_keys, hot_share } => {
                check((1..=1 << 32).contains(&keys), "keys", keys, "1 to 4294967296 keys")?;
                check(
                    (1..=keys).contains(&hot_keys),
                    "hot-keys",
                    hot_keys,
                    "1 to as many as there are keys",
                )?;
                check((0.0..=1.0).contains(&hot_share), "hot-share", hot_share, "a share from 0 to 1")?;
                Distribution::Integers(Integers::Hot { keys, hot_keys, hot_share })
            }
            DistributionOptions::Choice { values, weights } => choice(&values, weights)?,
            DistributionOptions::Text { min_length, max_length } => {
                check(max_length <= MOST_LETTERS, "max-length", max_length, "at most 1048576 letters")?;
                check(min_length <= max_length, "min-length", min_length, "at most `max-length`")?;
                Distribution::Text { min: min_length, max: max_length }
            }
            DistributionOptions::Time { start, step, jitter } => {
                let found = parse_timestamp(&start);
                let start =
                    found.ok_or_else(|| expected("start", &start, "a time such as 2024-01-31T10:00:00Z"))?;
                let micros = |time: TextDuration| i64::try_from(time.0.as_micros()).unwrap_or(i64::MAX);
                Distribution::Times(Times {
                    start,
                    step: micros(step),
                    jitter: jitter.map_or(0, |time| micros(time) / 1000),
                })
            }
        })
    }
}

fn check(good: bool, key: &str, found: impl ToString, wanted: &str) -> Result<(), OptionsError> {
    if good { Ok(()) } else { Err(expected(key, &found.to_string(), wanted)) }
}

fn expected(key: &str, found: &str, wanted: &str) -> OptionsError {
    OptionsError::at(key, format!("found `{found}`, expected {wanted}"))
}

/// Integers if both ends are.
fn uniform(min: &Number, max: &Number) -> Result<Distribution, OptionsError> {
    if let (Some(min), Some(max)) = (min.as_i64(), max.as_i64()) {
        check(min <= max, "min", min, "at most `max`")?;
        return Ok(Distribution::Integers(Integers::Uniform { min, max }));
    }
    let (Some(least), Some(most)) = (min.as_f64(), max.as_f64()) else {
        return Err(expected("min", &min.to_string(), "a number"));
    };
    check(least <= most && (most - least).is_finite(), "min", min, "at most `max`")?;
    Ok(Distribution::Floats { min: least, max: most })
}

fn choice(values: &[Value], weights: Option<Vec<f64>>) -> Result<Distribution, OptionsError> {
    let count = values.len();
    check((1..=MOST_SHARES as usize).contains(&count), "values", count, "at least one value")?;
    let weights = weights.unwrap_or_else(|| vec![1.0; count]);
    check(weights.len() == count, "weights", weights.len(), "as many weights as values")?;
    let good = weights.iter().all(|w| w.is_finite() && *w >= 0.0) && weights.iter().sum::<f64>() > 0.0;
    check(good, "weights", format!("{weights:?}"), "numbers from 0 on, not all of them 0")?;
    let integers: Option<Vec<i64>> = values.iter().map(Value::as_i64).collect();
    let texts: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
    let values: ArrayRef = match (integers, texts) {
        (Some(integers), _) => Arc::new(Int64Array::from(integers)),
        (_, Some(texts)) => Arc::new(StringViewArray::from(texts)),
        _ => return Err(expected("values", &Value::from(values.to_vec()).to_string(), "texts, or integers")),
    };
    Ok(Distribution::Choice { values, weights: Weights::new(weights.into_iter()) })
}

/// Distributions of integers.
pub(crate) enum Integers {
    Sequence { start: i64, step: i64 },
    Uniform { min: i64, max: i64 },
    Zipf(Weights),
    Hot { keys: u64, hot_keys: u64, hot_share: f64 },
}

impl Integers {
    /// The value of record `i`; a sequence that leaves 64 bits goes on at their other end.
    pub(crate) fn value(&self, i: u64, mut random: Random) -> i64 {
        match self {
            Integers::Sequence { start, step } => start.wrapping_add(step.wrapping_mul(i as i64)),
            Integers::Uniform { min, max } => {
                let values = (i128::from(*max) - i128::from(*min) + 1) as u128;
                let offset = (u128::from(random.next()) * values) >> 64;
                (i128::from(*min) + offset as i128) as i64
            }
            Integers::Zipf(shares) => shares.pick(random.unit()) as i64,
            Integers::Hot { keys, hot_keys, hot_share } => {
                let hot = random.unit() < *hot_share || hot_keys == keys;
                let random = random.next();
                (if hot { below(random, *hot_keys) } else { hot_keys + below(random, keys - hot_keys) })
                    as i64
            }
        }
    }
}

/// Times that advance evenly, each up to `jitter` earlier.
pub(crate) struct Times {
    /// Milliseconds since 1970.
    start: i64,
    /// Microseconds.
    step: i64,
    /// Milliseconds.
    jitter: i64,
}

impl Times {
    /// The time of record `i`, at most the last one that a timestamp may have.
    pub(crate) fn value(&self, i: u64, mut random: Random) -> i64 {
        let jitter = (u128::from(random.next()) * self.jitter as u128) >> 64;
        let offset = i128::from(self.step) * i128::from(i) / 1000 - jitter as i128;
        (i128::from(self.start) + offset)
            .clamp((*crate::file::TIMESTAMPS.start()).into(), (*crate::file::TIMESTAMPS.end()).into())
            as i64
    }
}

/// Shares of several values, summed up.
pub(crate) struct Weights {
    sums: Vec<f64>,
}

impl Weights {
    fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let mut add = |weight: f64| {
            sum += weight;
            sum
        };
        Self { sums: weights.map(&mut add).collect() }
    }

    /// Which value a number from 0 up to 1 falls on.
    pub(crate) fn pick(&self, unit: f64) -> usize {
        let target = unit * self.sums.last().copied().unwrap_or_default();
        let behind = self.sums.partition_point(|sum| *sum <= target);
        behind.min(self.sums.len() - 1)
    }
}

/// The random numbers of one value.
#[derive(Clone, Copy)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64, record: u64) -> Self {
        Self(mix(seed.wrapping_add(mix(record))))
    }

    pub(crate) fn next(&mut self) -> u64 {
        let now = self.0;
        self.0 = mix(now);
        now
    }

    /// From 0 up to, but not, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn text(mut self, min: usize, max: usize) -> String {
        let length = min + below(self.next(), (max - min + 1) as u64) as usize;
        (0..length).map(|_| char::from(b'a' + below(self.next(), 26) as u8)).collect()
    }
}
