//! What each function does wrong.

use std::cell::Cell;

/// A way of breaking the rules.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// The output has more rows than its column.
    ShortColumn,
    /// The offsets of a text column fall.
    FallingOffsets,
    /// The offsets of a text column point behind its bytes.
    OffsetsBehindBytes,
    /// A text column with one offset too few.
    MissingOffset,
    /// A text column that is not UTF-8.
    InvalidText,
    /// A column of another layout than declared.
    WrongLayout,
    /// No column where one is declared.
    NoColumn,
    /// Two columns where one is declared.
    ExtraColumn,
    /// A validity bitmap that is too short.
    ShortValidity,
    /// A null in a column that is declared without nulls.
    UndeclaredNull,
    /// A row from a row behind the input's last.
    OriginOutOfRange,
    /// Origins for fewer rows than the output has.
    ShortOrigins,
    /// A row each, but not as many rows as the input.
    EachOfOthers,
    /// An output for a port that is not declared.
    UnknownPort,
    /// A refused row behind the input's last.
    RejectedOutOfRange,
    /// Columns of 2 GiB in all, over the same memory.
    Huge,
    /// Four thousand million rows without columns.
    ManyRows,
    /// An error of 64 MiB of text.
    LongError,
    /// Reads the state of a key that is not in the call.
    UnknownKeyRead,
    /// Writes the state of a key that is not in the call.
    UnknownKeyWrite,
    /// Writes fewer cells than keys.
    ShortCells,
    /// Opens a state that is not declared.
    UnknownState,
    /// Sets a timer for a key that is not in the call.
    UnknownKeyTimer,
    /// Sets more times than keys.
    UnevenTimers,
}

impl Fault {
    /// All faults, with the names of their functions.
    pub(crate) const ALL: [(&'static str, Fault); 24] = [
        ("short_column", Fault::ShortColumn),
        ("falling_offsets", Fault::FallingOffsets),
        ("offsets_behind_bytes", Fault::OffsetsBehindBytes),
        ("missing_offset", Fault::MissingOffset),
        ("invalid_text", Fault::InvalidText),
        ("wrong_layout", Fault::WrongLayout),
        ("no_column", Fault::NoColumn),
        ("extra_column", Fault::ExtraColumn),
        ("short_validity", Fault::ShortValidity),
        ("undeclared_null", Fault::UndeclaredNull),
        ("origin_out_of_range", Fault::OriginOutOfRange),
        ("short_origins", Fault::ShortOrigins),
        ("each_of_others", Fault::EachOfOthers),
        ("unknown_port", Fault::UnknownPort),
        ("rejected_out_of_range", Fault::RejectedOutOfRange),
        ("huge", Fault::Huge),
        ("many_rows", Fault::ManyRows),
        ("long_error", Fault::LongError),
        ("unknown_key_read", Fault::UnknownKeyRead),
        ("unknown_key_write", Fault::UnknownKeyWrite),
        ("short_cells", Fault::ShortCells),
        ("unknown_state", Fault::UnknownState),
        ("unknown_key_timer", Fault::UnknownKeyTimer),
        ("uneven_timers", Fault::UnevenTimers),
    ];

    /// The fault of a function.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, fault)| *fault).ok_or_else(|| format!("no function `{name}`"))
    }

    /// Whether it shows in a process function; else in a map function.
    pub(crate) fn needs_keys(self) -> bool {
        matches!(
            self,
            Fault::UnknownKeyRead
                | Fault::UnknownKeyWrite
                | Fault::ShortCells
                | Fault::UnknownState
                | Fault::UnknownKeyTimer
                | Fault::UnevenTimers
        )
    }

    /// Whether its output column is text; else it is of int64.
    pub(crate) fn has_text(self) -> bool {
        matches!(
            self,
            Fault::FallingOffsets | Fault::OffsetsBehindBytes | Fault::MissingOffset | Fault::InvalidText
        )
    }
}

thread_local! {
    static OPENED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Opens the function of this name.
pub(crate) fn open(name: &str) -> Result<Fault, String> {
    let fault = Fault::named(name)?;
    OPENED.set(Some(fault));
    Ok(fault)
}

/// The open function's fault.
pub(crate) fn opened() -> Result<Fault, String> {
    OPENED.get().ok_or_else(|| "no function is open".to_owned())
}
