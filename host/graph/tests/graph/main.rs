//! Job files in, plans or errors out.

mod columns;
mod examples;
mod execution;
mod names;
mod operators;
mod plans;
mod structure;
mod support;
mod values;
mod windows;
