//! Workload `shuffle`: the last byte of each record, behind an exchange by key.

use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{Array, BinaryViewArray, builder::make_view, cast::AsArray};
use arrow_buffer::Buffer;
use millstream_types::Batch;

use super::{
    table::targets_of_column,
    work::{Out, Work},
};

pub(super) fn shuffle() -> Box<dyn Work> {
    Box::new(Bump)
}

struct Bump;

impl Work for Bump {
    fn targets(&self, batch: &Batch, threads: u32) -> Option<Vec<u32>> {
        Some(targets_of_column(batch, 0, threads))
    }

    fn process(&mut self, batch: Batch, out: &mut Out) -> Result<()> {
        let records = bumped(batch.column(1).as_binary_view())?;
        out.write(vec![batch.column(0).clone(), Arc::new(records)])
    }
}

fn bumped(records: &BinaryViewArray) -> Result<BinaryViewArray> {
    let total = records.lengths().map(|length| length as usize).sum();
    let mut bytes: Vec<u8> = Vec::with_capacity(total);
    let mut views = Vec::with_capacity(records.len());
    for record in records {
        let start = bytes.len();
        bytes.extend_from_slice(record.context("records are not null")?);
        if let Some(byte) = bytes[start..].get_mut(99) {
            *byte = byte.wrapping_add(1);
        }
        views.push(make_view(&bytes[start..], 0, start as u32));
    }
    Ok(BinaryViewArray::try_new(views.into(), vec![Buffer::from_vec(bytes)], None)?)
}
