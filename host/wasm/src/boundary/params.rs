//! The types of `wit/` as parameters: they borrow, so that lowering them is one copy into the guest's memory.

use wasmtime::component::{ComponentType, Lower};

use super::values::Values;
use crate::bindings::types::Window;

/// `var-values`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct VarParam<'a> {
    pub(crate) offsets: &'a [u32],
    pub(crate) bytes: Values<'a>,
}

/// `fixed-values`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct FixedParam<'a> {
    pub(crate) width: u32,
    pub(crate) bytes: &'a [u8],
}

/// `values`. All cases have to be named, for the type to be that of `wit/`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(variant)]
#[expect(dead_code, reason = "the logical types of manifest version 1 use some of the layouts")]
pub(crate) enum ValuesParam<'a> {
    #[component(name = "bits")]
    Bits(&'a [u8]),
    #[component(name = "int8")]
    Int8(&'a [i8]),
    #[component(name = "int16")]
    Int16(&'a [i16]),
    #[component(name = "int32")]
    Int32(&'a [i32]),
    #[component(name = "int64")]
    Int64(&'a [i64]),
    #[component(name = "float32")]
    Float32(&'a [f32]),
    #[component(name = "float64")]
    Float64(&'a [f64]),
    #[component(name = "fixed")]
    Fixed(FixedParam<'a>),
    #[component(name = "var")]
    Var(VarParam<'a>),
    #[component(name = "offsets")]
    Offsets(&'a [u32]),
    #[component(name = "fields")]
    Fields,
}

/// `column`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct ColumnParam<'a> {
    pub(crate) validity: Option<&'a [u8]>,
    pub(crate) values: ValuesParam<'a>,
    pub(crate) children: &'a [u32],
}

/// `batch`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct BatchParam<'a> {
    pub(crate) rows: u32,
    pub(crate) columns: &'a [ColumnParam<'a>],
}

/// `cells`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct CellsParam<'a> {
    pub(crate) present: &'a [u8],
    pub(crate) values: BatchParam<'a>,
}

/// `clock`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum ClockParam {
    #[component(name = "event")]
    Event,
    #[component(name = "processing")]
    Processing,
}

/// `process-function.keyed-batch`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct KeyedBatchParam<'a> {
    pub(crate) port: u32,
    pub(crate) rows: BatchParam<'a>,
    pub(crate) times: Option<&'a [i64]>,
    pub(crate) keys: BatchParam<'a>,
    #[component(name = "key-of-row")]
    pub(crate) key_of_row: &'a [u32],
    pub(crate) watermark: i64,
}

/// `process-function.fired`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct FiredParam<'a> {
    pub(crate) clock: ClockParam,
    pub(crate) keys: BatchParam<'a>,
    pub(crate) times: &'a [i64],
    pub(crate) watermark: i64,
}

impl From<millstream_types::Window> for Window {
    fn from(window: millstream_types::Window) -> Self {
        Self { start: window.start, end: window.end }
    }
}
