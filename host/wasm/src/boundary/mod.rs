//! What crosses between host and guest: parameters lowered from Arrow columns, results checked and lifted to them.

pub(crate) mod give;
pub(crate) mod lift;
pub(crate) mod lower;
pub(crate) mod outcome;
pub(crate) mod params;
pub(crate) mod values;
