//! Elements other than rows, as they travel.

use std::time::Duration;

use millstream_types::{Alignment, Barrier, BarrierKind, StreamElement};
use serde::{Deserialize, Serialize};

/// An element other than rows. The order of the variants is for ever, as it is what tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WireEvent {
    Watermark(i64),
    Idle,
    Active,
    End,
    Latency { source: u32, emitted: i64 },
    Barrier(WireBarrier),
}

/// A barrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireBarrier {
    id: u64,
    kind: WireKind,
    alignment: WireAlignment,
    triggered: i64,
    stop: bool,
    base: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum WireKind {
    Checkpoint,
    Savepoint,
    Swap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum WireAlignment {
    Aligned,
    AtLeastOnce,
    AlignedFor(Duration),
    Unaligned,
}

impl WireEvent {
    /// None of rows.
    pub(crate) fn of(element: &StreamElement) -> Option<Self> {
        Some(match element {
            StreamElement::Batch(_) => return None,
            StreamElement::Watermark(watermark) => Self::Watermark(*watermark),
            StreamElement::Idle => Self::Idle,
            StreamElement::Active => Self::Active,
            StreamElement::EndOfInput => Self::End,
            StreamElement::LatencyMarker { source, emitted } => {
                Self::Latency { source: *source, emitted: *emitted }
            }
            StreamElement::Barrier(barrier) => Self::Barrier(WireBarrier::of(barrier)),
        })
    }

    pub(crate) fn into_element(self) -> StreamElement {
        match self {
            Self::Watermark(watermark) => StreamElement::Watermark(watermark),
            Self::Idle => StreamElement::Idle,
            Self::Active => StreamElement::Active,
            Self::End => StreamElement::EndOfInput,
            Self::Latency { source, emitted } => StreamElement::LatencyMarker { source, emitted },
            Self::Barrier(barrier) => StreamElement::Barrier(barrier.into_barrier()),
        }
    }
}

impl WireBarrier {
    fn of(barrier: &Barrier) -> Self {
        let kind = match barrier.kind {
            BarrierKind::Checkpoint => WireKind::Checkpoint,
            BarrierKind::Savepoint => WireKind::Savepoint,
            BarrierKind::Swap => WireKind::Swap,
        };
        let alignment = match barrier.alignment {
            Alignment::Aligned => WireAlignment::Aligned,
            Alignment::AtLeastOnce => WireAlignment::AtLeastOnce,
            Alignment::AlignedFor(limit) => WireAlignment::AlignedFor(limit),
            Alignment::Unaligned => WireAlignment::Unaligned,
        };
        let Barrier { id, triggered, stop, base, .. } = *barrier;
        Self { id, kind, alignment, triggered, stop, base }
    }

    fn into_barrier(self) -> Barrier {
        let kind = match self.kind {
            WireKind::Checkpoint => BarrierKind::Checkpoint,
            WireKind::Savepoint => BarrierKind::Savepoint,
            WireKind::Swap => BarrierKind::Swap,
        };
        let alignment = match self.alignment {
            WireAlignment::Aligned => Alignment::Aligned,
            WireAlignment::AtLeastOnce => Alignment::AtLeastOnce,
            WireAlignment::AlignedFor(limit) => Alignment::AlignedFor(limit),
            WireAlignment::Unaligned => Alignment::Unaligned,
        };
        let Self { id, triggered, stop, base, .. } = self;
        Barrier { id, kind, alignment, triggered, stop, base }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn barrier(kind: BarrierKind, alignment: Alignment) -> StreamElement {
        StreamElement::Barrier(Barrier { id: 300, kind, alignment, triggered: -5, stop: true, base: Some(9) })
    }

    #[test]
    fn golden_bytes() {
        let limit = Duration::new(10, 5);
        let elements = [
            StreamElement::Watermark(-3),
            StreamElement::Idle,
            StreamElement::Active,
            StreamElement::EndOfInput,
            StreamElement::LatencyMarker { source: 4, emitted: 1000 },
            barrier(BarrierKind::Checkpoint, Alignment::Aligned),
            barrier(BarrierKind::Savepoint, Alignment::AtLeastOnce),
            barrier(BarrierKind::Swap, Alignment::AlignedFor(limit)),
            barrier(BarrierKind::Checkpoint, Alignment::Unaligned),
        ];
        let mut lines = String::new();
        for element in elements {
            let bytes = postcard::to_stdvec(&WireEvent::of(&element).expect("no rows")).expect("encoded");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let read = postcard::from_bytes::<WireEvent>(&bytes).expect("decoded").into_element();
            assert_eq!(format!("{read:?}"), format!("{element:?}"));
            lines += &format!("{hex}\n");
        }
        expect![[r#"
            0005
            01
            02
            03
            0404d00f
            05ac02000009010109
            05ac02010109010109
            05ac0202020a0509010109
            05ac02000309010109
        "#]]
        .assert_eq(&lines);
    }
}
