//! Accumulators between columns and structs: what the aggregate attribute calls.

use crate::bits::is_set;
use crate::column::{Batch, Mismatch};
use crate::function::Accumulated;
use crate::host::Cells;
use crate::reject::Rejections;
use crate::row::State;

/// The accumulators of a call's groups; absent ones are created.
pub fn accumulators<A: State>(cells: &Cells, create: impl Fn() -> A) -> Result<Vec<A>, Mismatch> {
    let groups = cells.values.rows;
    if cells.present.iter().all(|&byte| byte == 0) {
        return Ok((0..groups).map(|_| create()).collect());
    }
    let reader = A::reader(&cells.values)?;
    let group = |at| if is_set(&cells.present, at) { A::read(&reader, at) } else { create() };
    Ok((0..groups).map(group).collect())
}

/// Accumulators after a call.
pub fn accumulated<A: State>(groups: Vec<A>, rejections: Rejections) -> Accumulated {
    Accumulated { accumulators: batch(groups), rejected: rejections.finish() }
}

/// Merges accumulators pairwise.
pub fn merge<A: State>(
    into: &Batch,
    other: &Batch,
    mut merge: impl FnMut(&mut A, A),
) -> Result<Batch, Mismatch> {
    if into.rows != other.rows {
        return Err(Mismatch::Rows { expected: into.rows, found: other.rows });
    }
    let (left, right) = (A::reader(into)?, A::reader(other)?);
    let merged = (0..into.rows).map(|at| {
        let mut accumulator = A::read(&left, at);
        merge(&mut accumulator, A::read(&right, at));
        accumulator
    });
    Ok(batch(merged.collect()))
}

fn batch<A: State>(groups: Vec<A>) -> Batch {
    let rows = groups.len();
    let mut builder = A::builder(rows);
    groups.into_iter().for_each(|accumulator| accumulator.append_to(&mut builder));
    Batch { rows, columns: A::finish(builder) }
}
