//! Workloads `shuffle` and `latency`: the last byte of a record of 100 goes up by one.

use millstream::{Bytes, Columns};

/// Records of 100 bytes.
#[derive(Columns)]
pub struct Records {
    record: Bytes,
}

/// Adds one to byte 99 of each record.
#[millstream::map(columns, name = "shuffle")]
pub fn bump(mut records: Records) -> Records {
    for record in records.record.0.offsets.windows(2) {
        let record = &mut records.record.0.bytes[record[0] as usize..record[1] as usize];
        if let Some(byte) = record.get_mut(99) {
            *byte = byte.wrapping_add(1);
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::column::VarValues;

    #[test]
    fn only_byte_99_changes() {
        let mut values = VarValues::default();
        values.push(&[255; 100]);
        values.push(&[7; 3]);
        let records = bump(Records { record: Bytes(values) });
        assert_eq!(records.record.0.row(0)[..99], [255; 99]);
        assert_eq!((records.record.0.row(0)[99], records.record.0.row(1)), (0, &[7; 3][..]));
    }
}
