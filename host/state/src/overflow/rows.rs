//! What a store has of windows and sessions, byte by byte.
//!
//! Of windows:
//!
//! | table | key | value |
//! |---|---|---|
//! | keys | window, key group `u16` big endian, length of the key `u32` big endian, key | its accumulator, as a row |
//! | keys | the same, number of the piece `u64` big endian | some of its rows: their number `u32`, rows as one blob |
//! | timers | window | number of entries of the window `u64`, number of the next piece `u64` |
//!
//! A window is its end and its start, both `i64` big endian with the sign bit flipped, so that windows lie in the order in
//! which they end. All that a window has lies side by side, whatever the key group: it is fired by one scan and dropped by
//! one range. The pieces of a key are in the order of their numbers, in which their rows came. The table of timers is
//! brought up to date for an image only.
//!
//! Of sessions:
//!
//! | table | key | value |
//! |---|---|---|
//! | keys | key group `u16` big endian, key | the time in the table of timers `i64`, number of sessions `u32`, these as a chunk has them |
//! | timers | time `i64` big endian with its sign bit flipped, key group `u16` big endian, key | nothing |
//!
//! The time is the first at which a session of the key is over, or forgotten.

use millstream_types::{KeyGroup, MaxParallelism, Window, hash_key};

use crate::{
    StateError,
    snapshot::{put_i64, put_u32, take_i64, take_u32, take_u64},
};

/// Appends a window.
pub(crate) fn put_window(window: Window, out: &mut Vec<u8>) {
    out.extend(ordered(window.end));
    out.extend(ordered(window.start));
}

/// The bytes of a window.
pub(crate) fn window_key(window: Window) -> Vec<u8> {
    let mut key = Vec::with_capacity(WINDOW);
    put_window(window, &mut key);
    key
}

/// Cuts a window off the front of a key.
pub(crate) fn take_window(key: &mut &[u8]) -> Result<Window, StateError> {
    let end = take_ordered(key)?;
    Ok(Window { start: take_ordered(key)?, end })
}

/// Appends the bytes that all of a key in a window start with.
pub(crate) fn put_window_row(window: Window, key: &[u8], max: MaxParallelism, out: &mut Vec<u8>) {
    put_window(window, out);
    out.extend(max.group_of(hash_key(key)).0.to_be_bytes());
    out.extend((key.len() as u32).to_be_bytes());
    out.extend_from_slice(key);
}

/// What the rows of a window start with whose keys are of a key group, or of one behind it.
pub(crate) fn group_in_window(window: Window, group: u16) -> Vec<u8> {
    let mut key = window_key(window);
    key.extend(group.to_be_bytes());
    key
}

/// The key in a row's key, and how long the bytes are that all of the key in the window start with.
pub(crate) fn split_window_row(row_key: &[u8]) -> Result<(&[u8], usize), StateError> {
    let (length, rest) = row_key
        .get(WINDOW + GROUP..)
        .and_then(|k| k.split_first_chunk::<4>())
        .ok_or(StateError::DamagedRow)?;
    let length = u32::from_be_bytes(*length) as usize;
    let key = rest.get(..length).ok_or(StateError::DamagedRow)?;
    Ok((key, WINDOW + GROUP + 4 + length))
}

/// The first string behind all that a window has.
pub(crate) fn end_of_window(window: Window) -> Vec<u8> {
    // A key group is never the greatest number.
    group_in_window(window, u16::MAX)
}

/// What the table of timers has of a window.
pub(crate) fn window_value(entries: u64, next_piece: u64) -> [u8; 16] {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&entries.to_le_bytes());
    value[8..].copy_from_slice(&next_piece.to_le_bytes());
    value
}

/// Reads what [`window_value`] has made: entries and next piece.
pub(crate) fn take_window_value(mut value: &[u8]) -> Result<(u64, u64), StateError> {
    Ok((take_u64(&mut value)?, take_u64(&mut value)?))
}

/// Appends what a key's row of sessions has as its key.
pub(crate) fn put_session_row(key: &[u8], max: MaxParallelism, out: &mut Vec<u8>) {
    out.extend(max.group_of(hash_key(key)).0.to_be_bytes());
    out.extend_from_slice(key);
}

/// Appends what the table of timers has for such a row.
pub(crate) fn put_session_timer(time: i64, row_key: &[u8], out: &mut Vec<u8>) {
    out.extend(ordered(time));
    out.extend_from_slice(row_key);
}

/// The time and the row key of that.
pub(crate) fn split_session_timer(mut timer: &[u8]) -> Result<(i64, &[u8]), StateError> {
    let time = take_ordered(&mut timer)?;
    Ok((time, timer))
}

/// The time in a row of sessions, how many there are, and the sessions.
pub(crate) fn split_sessions(mut row: &[u8]) -> Result<(i64, u32, &[u8]), StateError> {
    let (time, sessions) = (take_i64(&mut row)?, take_u32(&mut row)?);
    Ok((time, sessions, row))
}

/// Begins a row of sessions.
pub(crate) fn put_sessions(time: i64, sessions: u32, out: &mut Vec<u8>) {
    put_i64(time, out);
    put_u32(sessions, out);
}

/// Where the rows of a key group begin that start with it.
pub(crate) fn group_start(group: KeyGroup) -> [u8; 2] {
    group.0.to_be_bytes()
}

fn ordered(time: i64) -> [u8; 8] {
    (time as u64 ^ 1 << 63).to_be_bytes()
}

fn take_ordered(key: &mut &[u8]) -> Result<i64, StateError> {
    let (time, rest) = key.split_first_chunk::<8>().ok_or(StateError::DamagedRow)?;
    *key = rest;
    Ok((u64::from_be_bytes(*time) ^ 1 << 63) as i64)
}

/// Bytes of a window.
const WINDOW: usize = 16;
/// Bytes of a key group.
const GROUP: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_in_the_order_of_their_ends_and_keys_within_them() {
        let max = MaxParallelism::new(4).expect("in range");
        let windows = [(i64::MIN, -5), (-20, -5), (0, 10), (5, 10), (i64::MIN, i64::MAX)];
        let keys = windows.map(|(start, end)| window_key(Window { start, end }));
        assert!(keys.is_sorted());
        for (start, end) in windows {
            let window = Window { start, end };
            let mut row = Vec::new();
            put_window_row(window, b"key", max, &mut row);
            let length = row.len();
            row.extend(7u64.to_be_bytes());
            assert_eq!(split_window_row(&row), Ok((&b"key"[..], length)));
            assert!(window_key(window) < row && row < end_of_window(window));
            assert_eq!(take_window(&mut &row[..]), Ok(window));
            assert!(split_window_row(&row[..20]).is_err());
        }
        assert_eq!(take_window_value(&window_value(3, 4)), Ok((3, 4)));
    }

    #[test]
    fn timers_of_sessions_lie_in_order_of_time() {
        let timer = |time, key: &[u8]| {
            let mut timer = Vec::new();
            put_session_timer(time, key, &mut timer);
            timer
        };
        let timers = [timer(i64::MIN, b"z"), timer(-1, b"y"), timer(3, b"a"), timer(3, b"b")];
        assert!(timers.is_sorted());
        assert_eq!(split_session_timer(&timers[1]), Ok((-1, &b"y"[..])));
    }

    #[test]
    fn the_bytes_are_for_ever() {
        let max = MaxParallelism::new(4).expect("in range");
        let mut row = Vec::new();
        put_window_row(Window { start: 1, end: 258 }, b"k", max, &mut row);
        let hex: String = row.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "800000000000010280000000000000010001000000016b");
    }
}
