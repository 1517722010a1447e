//! Opening files for reading, compressed or not.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use flate2::read::MultiGzDecoder;

use super::options::Compression;

/// The bytes `start..end` of a file, or all of its decompressed bytes.
pub(crate) fn open(path: &Path, compression: Compression, start: u64, end: u64) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    Ok(match compression {
        Compression::None => {
            file.seek(SeekFrom::Start(start))?;
            Box::new(file.take(end - start))
        }
        Compression::Gzip => Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, file))),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
    })
}
