//! The entries of a chunk, one token after the other, whatever its form.

use millstream_types::StateForm;

use crate::{
    StateError,
    row_codec::RowReader,
    snapshot::{take_bytes, take_i64, take_u8, take_u32},
};

/// A piece of a chunk, in the order of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An encoded key, as a blob.
    Key(&'a [u8]),
    /// A key of a map, as a blob.
    MapKey(&'a [u8]),
    /// The bounds of a window or session.
    Window(i64, i64),
    /// How many things of what follows there are.
    Count(u32),
    /// A time, or a number.
    Time(i64),
    /// What is known of a session.
    Flags(u8),
    /// A row.
    Row,
    /// A row as a blob.
    RowBlob,
    /// Rows as one blob, behind their number.
    Rows(u32),
}

/// Goes through a chunk. Its rows go into `rows`, in order. What only a connector can read is passed over.
pub(super) fn walk<'a>(
    form: StateForm,
    bytes: &'a [u8],
    rows: &mut RowReader,
    each: impl FnMut(Token<'a>),
) -> Result<(), StateError> {
    let mut walk = Walk { bytes, rows, each };
    match form {
        StateForm::Splits | StateForm::Enumerator | StateForm::Store => return Ok(()),
        StateForm::Items | StateForm::UnionItems => walk.row()?,
        StateForm::Subtask => walk.time()?,
        StateForm::InFlight => {
            walk.time()?;
            walk.count()?;
            walk.row()?;
        }
        StateForm::Overtaken => walk.channel()?,
        _ => {
            while !walk.bytes.is_empty() {
                walk.entry(form)?;
            }
        }
    }
    if walk.bytes.is_empty() { Ok(()) } else { Err(StateError::DamagedChunk) }
}

struct Walk<'a, 'r, F> {
    bytes: &'a [u8],
    rows: &'r mut RowReader,
    each: F,
}

impl<'a, F: FnMut(Token<'a>)> Walk<'a, '_, F> {
    fn entry(&mut self, form: StateForm) -> Result<(), StateError> {
        match form {
            StateForm::List => {
                self.key()?;
                self.rows()
            }
            StateForm::Map => {
                self.key()?;
                for _ in 0..self.count()? {
                    self.map_key()?;
                    self.row_blob()?;
                }
                Ok(())
            }
            StateForm::EventTimers | StateForm::ProcessingTimers | StateForm::Expiries => {
                self.key()?;
                let times = self.count()?;
                (0..times).try_for_each(|_| self.time())
            }
            StateForm::Accumulators | StateForm::Contents => {
                self.window()?;
                for _ in 0..self.count()? {
                    self.key()?;
                    self.content(form)?;
                }
                Ok(())
            }
            StateForm::SessionAccumulators | StateForm::SessionContents => {
                self.key()?;
                self.window()?;
                if self.flags()? & HAS_CONTENT != 0 { self.content(form) } else { Ok(()) }
            }
            StateForm::TimedRows => {
                self.key()?;
                for _ in 0..self.count()? {
                    self.time()?;
                    self.row()?;
                }
                Ok(())
            }
            StateForm::Broadcast => {
                self.map_key()?;
                self.row()
            }
            _ => {
                self.key()?;
                self.row()
            }
        }
    }

    /// The ends of a channel and what it had under way.
    fn channel(&mut self) -> Result<(), StateError> {
        self.count()?;
        self.count()?;
        while !self.bytes.is_empty() {
            match self.flags()? {
                ROWS => {
                    for _ in 0..self.count()? {
                        self.time()?;
                        self.row()?;
                    }
                }
                WATERMARK => self.time()?,
                _ => return Err(StateError::DamagedChunk),
            }
        }
        Ok(())
    }

    /// An accumulator, or rows.
    fn content(&mut self, form: StateForm) -> Result<(), StateError> {
        match form {
            StateForm::Contents | StateForm::SessionContents => self.rows(),
            _ => self.row(),
        }
    }

    fn key(&mut self) -> Result<(), StateError> {
        let key = take_bytes(&mut self.bytes)?;
        (self.each)(Token::Key(key));
        Ok(())
    }

    fn map_key(&mut self) -> Result<(), StateError> {
        let key = take_bytes(&mut self.bytes)?;
        (self.each)(Token::MapKey(key));
        Ok(())
    }

    fn window(&mut self) -> Result<(), StateError> {
        let (start, end) = (take_i64(&mut self.bytes)?, take_i64(&mut self.bytes)?);
        (self.each)(Token::Window(start, end));
        Ok(())
    }

    fn count(&mut self) -> Result<u32, StateError> {
        let count = take_u32(&mut self.bytes)?;
        (self.each)(Token::Count(count));
        Ok(count)
    }

    fn time(&mut self) -> Result<(), StateError> {
        let time = take_i64(&mut self.bytes)?;
        (self.each)(Token::Time(time));
        Ok(())
    }

    fn flags(&mut self) -> Result<u8, StateError> {
        let flags = take_u8(&mut self.bytes)?;
        (self.each)(Token::Flags(flags));
        Ok(flags)
    }

    fn row(&mut self) -> Result<(), StateError> {
        self.rows.read(&mut self.bytes)?;
        (self.each)(Token::Row);
        Ok(())
    }

    fn row_blob(&mut self) -> Result<(), StateError> {
        self.rows.read_all(take_bytes(&mut self.bytes)?, 1)?;
        (self.each)(Token::RowBlob);
        Ok(())
    }

    fn rows(&mut self) -> Result<(), StateError> {
        let count = take_u32(&mut self.bytes)?;
        self.rows.read_all(take_bytes(&mut self.bytes)?, count as usize)?;
        (self.each)(Token::Rows(count));
        Ok(())
    }
}

/// What an element of a channel is.
pub(super) const ROWS: u8 = 0;
pub(super) const WATERMARK: u8 = 1;

/// The flag of a session that has an accumulator or rows.
const HAS_CONTENT: u8 = 2;
