//! Functions over the flights that left New York in 2013: one of each kind.

mod busy_planes;
mod delay_stats;
mod departed;
mod rotation;

pub use busy_planes::{Busy, BusyPlanes, Leg};
pub use delay_stats::{DelayStats, Delayed, Delays, Report};
pub use departed::{Departed, Flight, Known, Scheduled, known_planes, only_delayed};
pub use rotation::{Rotation, RotationLeg, rotations};

millstream::module! {
    name: "flights",
    functions: [only_delayed, known_planes, DelayStats, BusyPlanes, rotations],
}
