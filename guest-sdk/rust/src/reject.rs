//! Refusing a row: data, not an error of the call. The operator's policy decides what happens to the row.

/// Why a function refuses a row. Any error turns into one, so `?` works in a function that returns
/// `Result<_, Reject>`.
///
/// The rest of the call stands: what other rows emitted and stored, and what this row did before it was
/// refused. So refuse before writing state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    reason: String,
}

impl Reject {
    /// Refuses the row for this reason, which the job's log or dead-letter sink shows.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl<E: std::error::Error> From<E> for Reject {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

/// A refused row of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Position of the row in the call's input.
    pub row: u32,
    /// Why.
    pub reason: String,
}

/// The rows that a call refused.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Rejections(Vec<Rejected>);

impl Rejections {
    /// Notes a row's refusal; passes its value on otherwise.
    #[inline(always)]
    pub fn accept<T>(&mut self, row: usize, result: Result<T, Reject>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(reject) => {
                self.push(row, reject);
                None
            }
        }
    }

    #[cold]
    fn push(&mut self, row: usize, reject: Reject) {
        self.0.push(Rejected { row: row as u32, reason: reject.reason });
    }

    /// The refused rows, in order.
    pub fn finish(self) -> Vec<Rejected> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_is_a_reason() {
        let parse = || -> Result<i32, Reject> { Ok("x".parse::<i32>()?) };
        assert_eq!(parse().expect_err("no number").reason(), "invalid digit found in string");
    }

    #[test]
    fn refused_rows_are_noted() {
        let mut rejections = Rejections::default();
        assert_eq!(rejections.accept(0, Ok(7)), Some(7));
        assert_eq!(rejections.accept::<i32>(3, Err(Reject::new("no"))), None);
        assert_eq!(rejections.finish(), [Rejected { row: 3, reason: "no".to_owned() }]);
    }
}
