//! What was under way when a barrier overtook it, and what becomes of it at a restore.
//!
//! Rows are kept, and the watermarks between them. Statuses are not: senders say anew whether they are idle. At a restore
//! everything goes through its sender again, which deals it out by the rule of its edge before it sends anything else. So
//! a row finds whoever owns its key by now, and the order of a channel stays.
//!
//! Where one subtask sends, before and now, a row is as late as it was: its watermarks went to all receivers, each of
//! which had received some of them and not others, and are sent again where they stood between rows. Rows go out in the
//! order of the watermark before them for that ([`deal`]). Where there are several senders, lateness is a matter of who
//! comes first, and what they have left to read may be dealt out to others than before, for whose rows no watermark of
//! theirs holds. Only rows are sent then; watermarks follow from what is read next.

use std::collections::BTreeMap;

use millstream_net::ChannelId;
use millstream_types::{MIN_WATERMARK, StreamElement};

use crate::Target;

/// What one channel had under way.
#[derive(Clone, Debug)]
pub struct Overtaken {
    /// The channel.
    pub channel: ChannelId,
    /// Batches and watermarks, in order.
    pub elements: Vec<StreamElement>,
}

impl Overtaken {
    /// Whether an element is kept.
    pub(crate) fn keeps(element: &StreamElement) -> bool {
        matches!(element, StreamElement::Batch(_) | StreamElement::Watermark(_))
    }
}

/// What a barrier has overtaken at one subtask.
#[derive(Clone, Debug, Default)]
pub struct InFlight {
    /// Of the channels into it: what it had not received.
    pub received: Vec<Overtaken>,
    /// Of the channels out of it: what it had not sent.
    pub unsent: Vec<Overtaken>,
}

/// What a subtask has to send again.
#[derive(Clone, Debug)]
pub struct Resent {
    /// Where it goes: over an edge, or, if the receiving operator is in its own chain by now, there.
    pub target: Target,
    /// Batches and watermarks, in order, with the subtask that was to receive each.
    pub elements: Vec<(u32, StreamElement)>,
}

/// What sender `index` of `senders` sends again over an edge that had `before` senders: of each of its channels `received`
/// has what had been sent, and `unsent` what came behind that.
pub fn deal(
    received: &[Overtaken],
    unsent: &[Overtaken],
    before: u32,
    index: u32,
    senders: u32,
) -> Vec<(u32, StreamElement)> {
    let mut channels: BTreeMap<ChannelId, Vec<&StreamElement>> = BTreeMap::new();
    for Overtaken { channel, elements } in received.iter().chain(unsent) {
        if channel.from % senders == index {
            channels.entry(*channel).or_default().extend(elements);
        }
    }
    let mut rows = Vec::new();
    let mut last = MIN_WATERMARK;
    for (channel, elements) in channels {
        let mut watermark = MIN_WATERMARK;
        for element in elements {
            match element {
                StreamElement::Watermark(next) => watermark = watermark.max(*next),
                rows_of => rows.push((watermark, channel.to, rows_of.clone())),
            }
        }
        last = last.max(watermark);
    }
    if before != 1 || senders != 1 {
        return rows.into_iter().map(|(_, to, rows)| (to, rows)).collect();
    }
    in_order_of_watermarks(rows, last)
}

/// Rows with the watermark before each and the last one of all, as one sequence. What a channel has stays in its order.
fn in_order_of_watermarks(mut rows: Vec<(i64, u32, StreamElement)>, last: i64) -> Vec<(u32, StreamElement)> {
    rows.sort_by_key(|(watermark, ..)| *watermark);
    let (mut sequence, mut reached) = (Vec::with_capacity(rows.len()), MIN_WATERMARK);
    let mut advance = |sequence: &mut Vec<_>, watermark: i64| {
        if watermark > reached {
            reached = watermark;
            sequence.push((0, StreamElement::Watermark(watermark)));
        }
    };
    for (watermark, to, rows) in rows {
        advance(&mut sequence, watermark);
        sequence.push((to, rows));
    }
    advance(&mut sequence, last);
    sequence
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use millstream_types::Batch;

    use super::*;

    /// `0>1: a 5 b` is what the channel from 0 to 1 had: rows, of which only the letter counts, and watermarks.
    fn overtaken(script: &str) -> Vec<Overtaken> {
        let channel = |line: &str| {
            let (channel, elements) = line.split_once(": ").expect("a channel");
            let (from, to) = channel.split_once('>').expect("two ends");
            let number = |text: &str| text.trim().parse().expect("a number");
            let element = |word: &str| match word.parse() {
                Ok(watermark) => StreamElement::Watermark(watermark),
                Err(_) => {
                    let source = millstream_types::RecordNumbers::Even { first: 0, stride: 1, rows: 1 };
                    let unit = millstream_types::RecordUnit::Line;
                    let positions = millstream_types::Positions::read(word.into(), unit, source);
                    StreamElement::Batch(Batch::empty().with_positions(Some(positions)))
                }
            };
            let elements = elements.split_whitespace().map(element).collect();
            Overtaken { channel: ChannelId { edge: 0, from: number(from), to: number(to) }, elements }
        };
        script.split(" | ").map(channel).collect()
    }

    fn check(received: &str, unsent: &str, (before, index, now): (u32, u32, u32), expected: Expect) {
        let dealt = deal(&overtaken(received), &overtaken(unsent), before, index, now);
        let show = |(to, element): &(u32, StreamElement)| match element {
            StreamElement::Batch(batch) => {
                let of = batch.positions().map(|p| p.of(0)).unwrap_or_default();
                format!("{}>{to}", of.split(':').next().unwrap_or_default())
            }
            StreamElement::Watermark(watermark) => watermark.to_string(),
            other => format!("{other:?}"),
        };
        expected.assert_eq(&dealt.iter().map(show).collect::<Vec<_>>().join(" "));
    }

    const RECEIVED: &str = "0>0: a 5 b 7 c | 0>1: d | 1>0: x 9 y";
    const UNSENT: &str = "0>0: 8 | 0>1: 5 e 7 8 f | 1>1: z";

    #[test]
    fn an_only_sender_sends_watermarks_where_they_stood() {
        let (received, unsent) = ("0>0: a 5 b 7 c | 0>1: d", "0>0: 8 | 0>1: 5 e 7 8 f");
        check(received, unsent, (1, 0, 1), expect!["a>0 d>1 5 b>0 e>1 7 c>0 8 f>1"]);
        check("0>0: 5", "0>0: 6", (1, 0, 1), expect!["6"]);
    }

    #[test]
    fn several_senders_send_rows_only_and_keep_the_order_of_each_channel() {
        check(RECEIVED, UNSENT, (2, 0, 2), expect!["a>0 b>0 c>0 d>1 e>1 f>1"]);
        check(RECEIVED, UNSENT, (2, 1, 2), expect!["x>0 y>0 z>1"]);
        check(RECEIVED, UNSENT, (2, 0, 1), expect!["a>0 b>0 c>0 d>1 e>1 f>1 x>0 y>0 z>1"]);
        check(RECEIVED, UNSENT, (2, 1, 3), expect!["x>0 y>0 z>1"]);
        check(RECEIVED, UNSENT, (2, 2, 3), expect![""]);
    }
}
