//! Payloads that are compressed.

use bytes::{Buf, Bytes};
use lz4_flex::block;

use super::LENGTH;
use crate::wire::frame::{FrameError, Kind, Payload};

/// The payload compressed, if that makes it shorter.
pub(super) fn compress(pieces: &[Bytes]) -> Option<Bytes> {
    let whole = pieces.concat();
    let mut compressed = vec![0; LENGTH + block::get_maximum_output_size(whole.len())];
    let length = block::compress_into(&whole, &mut compressed[LENGTH..]).ok()?;
    compressed[..LENGTH].copy_from_slice(&u32::try_from(whole.len()).ok()?.to_le_bytes());
    compressed.truncate(LENGTH + length);
    (compressed.len() < whole.len()).then(|| compressed.into())
}

/// How long a compressed payload says that it was.
pub(crate) fn uncompressed_length(payload: &mut Payload) -> Result<u32, FrameError> {
    payload.try_get_u32_le().map_err(|error| undecodable(error.to_string()))
}

/// The payload as it was before: exactly so long.
pub(crate) fn decompress(mut payload: Payload, length: u32) -> Result<Payload, FrameError> {
    let compressed = payload.copy_to_bytes(payload.remaining());
    let mut whole = vec![0; length as usize];
    match block::decompress_into(&compressed, &mut whole) {
        Ok(found) if found == whole.len() => Ok(Payload::from(vec![whole.into()])),
        Ok(found) => {
            Err(undecodable(format!("{found} bytes after decompression, and {length} were announced")))
        }
        Err(error) => Err(undecodable(format!("it cannot be decompressed: {error}"))),
    }
}

fn undecodable(problem: String) -> FrameError {
    FrameError::Undecodable { kind: Kind::Batch, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compressed_is_as_it_was() {
        let pieces = [Bytes::from(vec![7; 1000]), Bytes::from((0..=255).collect::<Vec<u8>>())];
        let mut payload = Payload::from(vec![compress(&pieces).expect("it gets shorter")]);
        let length = uncompressed_length(&mut payload).expect("there is one");
        assert_eq!(length, 1256);
        let mut whole = decompress(payload, length).expect("good");
        assert_eq!(whole.copy_to_bytes(1256), pieces.concat());
        assert!(
            compress(&[Bytes::from((0..=255).collect::<Vec<u8>>())]).is_none(),
            "there is nothing to gain"
        );
    }

    #[test]
    fn what_is_no_compressed_payload_is_refused() {
        let compressed = compress(&[Bytes::from(vec![7; 1000])]).expect("it gets shorter");
        for length in [0, 10, 999, 1001, 100_000] {
            assert!(decompress(Payload::from(vec![compressed.slice(LENGTH..)]), length).is_err(), "{length}");
        }
        assert!(decompress(Payload::from(vec![Bytes::from_static(&[0xff; 20])]), 1000).is_err());
        assert!(uncompressed_length(&mut Payload::from(vec![Bytes::from_static(&[1])])).is_err());
    }
}
