//! Opening files for reading, compressed or not.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use flate2::read::MultiGzDecoder;

use super::options::Compression;

/// The bytes `start..end` of a file, decompressed if it is compressed. What lies before `start` is then decompressed
/// too, and it is an error if the file ends before it.
pub(crate) fn open(path: &Path, compression: Compression, start: u64, end: u64) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut decoder: Box<dyn Read> = match compression {
        Compression::None => {
            file.seek(SeekFrom::Start(start))?;
            return Ok(Box::new(file.take(end.saturating_sub(start))));
        }
        Compression::Gzip => Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, file))),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
    };
    let skipped = io::copy(&mut decoder.by_ref().take(start), &mut io::sink())?;
    if skipped < start {
        let message = format!(
            "it has {skipped} bytes and was read up to byte {start} before: it has been replaced or cut off"
        );
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
    }
    Ok(decoder)
}
