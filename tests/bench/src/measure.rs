//! What is measured.

use serde::Serialize;

/// Who ran a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Engine {
    Millstream,
    /// The same loop in Rust.
    Native,
    Flink,
}

/// One measurement, or the medians of several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Measurement {
    pub(crate) workload: String,
    pub(crate) engine: Engine,
    pub(crate) parallelism: u32,
    /// Of the source, over all subtasks.
    pub(crate) records_per_second: f64,
    /// Of the whole process, for a million source records.
    pub(crate) cpu_seconds_per_million: f64,
    pub(crate) peak_rss_mb: f64,
    /// From emission to the sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
}

/// Percentiles of a latency, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
}

/// The median of each figure, for each workload, parallelism and engine in the order in which they first come.
pub(crate) fn medians(measured: &[Measurement]) -> Vec<Measurement> {
    let mut medians: Vec<Measurement> = Vec::new();
    for one in measured {
        if medians.iter().any(|m| same_kind(m, one)) {
            continue;
        }
        let group: Vec<_> = measured.iter().filter(|m| same_kind(m, one)).collect();
        let of = |figure: fn(&Measurement) -> f64| median(group.iter().map(|m| figure(m)).collect());
        let latencies: Vec<Latency> = group.iter().filter_map(|m| m.latency).collect();
        let latency_of = |figure: fn(&Latency) -> f64| median(latencies.iter().map(figure).collect());
        medians.push(Measurement {
            records_per_second: of(|m| m.records_per_second),
            cpu_seconds_per_million: of(|m| m.cpu_seconds_per_million),
            peak_rss_mb: of(|m| m.peak_rss_mb),
            latency: (!latencies.is_empty()).then(|| Latency {
                p50_us: latency_of(|l| l.p50_us),
                p99_us: latency_of(|l| l.p99_us),
                p999_us: latency_of(|l| l.p999_us),
            }),
            ..one.clone()
        });
    }
    medians
}

fn same_kind(a: &Measurement, b: &Measurement) -> bool {
    (&a.workload, a.engine, a.parallelism) == (&b.workload, b.engine, b.parallelism)
}

/// The median.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_taken_by_workload_engine_and_parallelism() {
        let one = |engine, parallelism, records_per_second| Measurement {
            workload: "map".into(),
            engine,
            parallelism,
            records_per_second,
            cpu_seconds_per_million: 1.0,
            peak_rss_mb: 1.0,
            latency: None,
        };
        let measured = [
            one(Engine::Millstream, 1, 5.0),
            one(Engine::Flink, 1, 1.0),
            one(Engine::Millstream, 1, 9.0),
            one(Engine::Millstream, 1, 6.0),
            one(Engine::Millstream, 2, 7.0),
        ];
        let rates: Vec<_> = medians(&measured).iter().map(|m| m.records_per_second).collect();
        assert_eq!(rates, [6.0, 1.0, 7.0]);
    }
}
