//! Opening files for reading, compressed or not.

use std::{
    fs::File,
    io::{self, BufRead, Read, Seek, SeekFrom},
    path::Path,
};

use flate2::bufread::GzDecoder;

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
        Compression::Gzip => Box::new(GzipReader::new(io::BufReader::with_capacity(1 << 16, file))),
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

/// The data of a gzip file, which may have been put together of several. What follows them has to be gzip too, or
/// zeros, with which some media fill up.
struct GzipReader<R: BufRead> {
    /// None behind the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipReader<R> {
    fn new(file: R) -> Self {
        Self { member: Some(GzDecoder::new(file)) }
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.member = next_member(self.member.take())?;
        }
        Ok(0)
    }
}

/// What follows a member that has been read through.
fn next_member<R: BufRead>(member: Option<GzDecoder<R>>) -> io::Result<Option<GzDecoder<R>>> {
    let Some(mut file) = member.map(GzDecoder::into_inner) else { return Ok(None) };
    loop {
        let rest = file.fill_buf()?;
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        match rest.first() {
            None => return Ok(None),
            Some(0) => file.consume(zeros),
            Some(&GZIP_START) => return Ok(Some(GzDecoder::new(file))),
            Some(_) => {
                let message = "bytes that are no gzip behind the end of the compressed data";
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
    }
}

/// The first byte of gzip data.
const GZIP_START: u8 = 0x1F;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("compressed");
        encoder.finish().expect("compressed")
    }

    fn read(bytes: &[u8]) -> Result<String, String> {
        let mut text = String::new();
        let read = GzipReader::new(io::BufReader::with_capacity(3, bytes)).read_to_string(&mut text);
        read.map(|_| text.clone()).map_err(|e| format!("{text} {e}"))
    }

    #[test]
    fn members_follow_each_other() {
        assert_eq!(read(&gzip("a")), Ok("a".into()));
        assert_eq!(read(&[gzip("a"), gzip(""), gzip("bc")].concat()), Ok("abc".into()));
        assert_eq!(read(&[gzip("a"), vec![0; 1000]].concat()), Ok("a".into()), "filled up with zeros");
    }

    #[test]
    fn what_is_no_gzip_behind_them_is_told() {
        let error = read(&[gzip("a"), b"more".to_vec()].concat()).expect_err("garbage");
        assert_eq!(error, "a bytes that are no gzip behind the end of the compressed data");
        let error = read(&[gzip("a"), gzip("b")[..5].to_vec()].concat()).expect_err("cut off");
        assert!(error.contains("unexpected end of file"), "{error}");
        assert!(read(b"").is_err(), "an empty file is no gzip");
    }
}
