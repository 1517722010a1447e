//! Counts of times in buckets that are at most 1.6 % wide.

/// A histogram of nanoseconds: exact below 64, then 64 buckets for each power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
}

/// Enough for any 64-bit number.
const BUCKETS: usize = 64 * 59;

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }
}

impl Histogram {
    /// Counts one time.
    pub fn record(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
    }

    /// Counts what another one has counted.
    pub fn add(&mut self, other: &Histogram) {
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
    }

    /// How many times it has counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time that this share of all does not exceed, such as 0.99; none if nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map(middle)
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < 64 {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let within = (nanos >> (power - 6)) & 63;
    ((power as usize - 5) << 6) + within as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    if bucket < 64 {
        return bucket as u64;
    }
    let power = (bucket >> 6) + 5;
    let low = (64 + (bucket as u64 & 63)) << (power - 6);
    low + (1 << (power - 6)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_cover_everything() {
        for nanos in [0, 1, 63, 64, 65, 127, 128, 1_000_000, 123_456_789, u64::MAX] {
            let found = middle(bucket(nanos));
            assert!(found.abs_diff(nanos) <= nanos / 64, "{nanos}: {found}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for nanos in 1..=50 {
            histogram.record(nanos);
        }
        assert_eq!(histogram.quantile(0.5), Some(25));
        assert_eq!(histogram.quantile(1.0), Some(50));
        let copy = histogram.clone();
        histogram.add(&copy);
        assert_eq!((histogram.count(), histogram.quantile(0.0)), (100, Some(1)));
    }
}
