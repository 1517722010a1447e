//! Places where tests let the process die, so that what takes several steps is cut between any two of them.

/// Lets the process die here, as a kill would, if the environment says so: `MILLSTREAM_CRASH_AT=NAME:3` the third time
/// that the place is reached. Only in builds with debug assertions; in a release build there is nothing.
#[inline]
pub fn crash_point(name: &str) {
    #[cfg(debug_assertions)]
    armed::reached(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    };

    struct CrashPoint {
        name: String,
        left: AtomicU64,
    }

    static ARMED: LazyLock<Option<CrashPoint>> = LazyLock::new(|| {
        let text = std::env::var(VARIABLE).ok()?;
        let (name, times) = text.split_once(':').unwrap_or((&text, "1"));
        let left = times.parse().ok().filter(|&times| times > 0);
        let left = left.unwrap_or_else(|| panic!("{VARIABLE}: `{text}`: expected `NAME` or `NAME:TIMES`"));
        Some(CrashPoint { name: name.to_owned(), left: AtomicU64::new(left) })
    });

    pub(super) fn reached(name: &str) {
        let Some(point) = ARMED.as_ref().filter(|point| point.name == name) else { return };
        if point.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::process::abort();
        }
    }

    const VARIABLE: &str = "MILLSTREAM_CRASH_AT";
}
