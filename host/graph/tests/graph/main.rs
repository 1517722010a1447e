//! Job files in, plans or errors out.

mod columns;
mod examples;
mod execution;
mod functions;
mod job_settings;
mod json;
mod keys;
mod names;
mod operators;
mod plans;
mod size;
mod structure;
mod support;
mod text;
mod values;
mod window_plans;
mod windows;
