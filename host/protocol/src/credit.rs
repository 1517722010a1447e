//! Credits: what a sender may have under way to a receiver.
//!
//! One credit is 32 KiB. Each channel has some of its own (*exclusive*), and the channels of a gate share some more
//! (*floating*). Data is admitted when its cost fits into what is left of both; data on an empty channel is always
//! admitted, whatever it costs, so that nothing is too large to travel and no channel starves. Events cost nothing.

/// Bytes that one credit stands for.
pub const CREDIT_BYTES: usize = 32 * 1024;

/// The cost of something that takes `bytes`: at least one credit.
pub fn credits_for(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(CREDIT_BYTES)).unwrap_or(u32::MAX).max(1)
}

/// The credits of one channel. The gate's floating credits are kept by the caller, who tells how many are free.
///
/// It is a small value, so that the two ends of a channel in one process can share it in an atomic: see
/// [`CreditLedger::to_bits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditLedger {
    exclusive: u32,
    in_use: u32,
    borrowed: u32,
}

/// Whether something may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes, taking this many of the floating credits.
    Admitted {
        /// Floating credits taken.
        floating: u32,
    },
    /// Not before credit comes back.
    Wait,
}

impl CreditLedger {
    /// A channel with `exclusive` credits of its own.
    pub fn new(exclusive: u32) -> Self {
        Self { exclusive, in_use: 0, borrowed: 0 }
    }

    /// Credits in use, floating ones and those beyond any limit included.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// What changes in a ledger, as one word.
    pub fn to_bits(self) -> u64 {
        u64::from(self.borrowed) << 32 | u64::from(self.in_use)
    }

    /// The ledger of a channel with `exclusive` credits of its own whose changing part is `bits`.
    pub fn from_bits(exclusive: u32, bits: u64) -> Self {
        Self { exclusive, in_use: bits as u32, borrowed: (bits >> 32) as u32 }
    }

    /// Asks to send something of `cost` while `floating` credits of the gate are free, and books it if admitted.
    pub fn handle_send(&mut self, cost: u32, floating: u32) -> Admission {
        self.handle_grant(cost, floating, 0)
    }

    /// The same for a sender elsewhere that is granted `cost` credits ahead: of those in use, `unused` have been granted and
    /// nothing has come for them, so that the channel is empty if these are all.
    pub fn handle_grant(&mut self, cost: u32, floating: u32, unused: u32) -> Admission {
        let own = (self.exclusive + self.borrowed).saturating_sub(self.in_use);
        let missing = cost.saturating_sub(own);
        if missing > floating && self.in_use > unused {
            return Admission::Wait;
        }
        let taken = missing.min(floating);
        self.in_use = self.in_use.saturating_add(cost);
        self.borrowed += taken;
        Admission::Admitted { floating: taken }
    }

    /// The receiver has consumed something of `cost`. Answers how many floating credits go back to the gate.
    pub fn handle_consumed(&mut self, cost: u32) -> u32 {
        self.in_use = self.in_use.saturating_sub(cost);
        let needed = self.in_use.saturating_sub(self.exclusive);
        let back = self.borrowed.saturating_sub(needed);
        self.borrowed -= back;
        back
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn costs_are_rounded_up() {
        assert_eq!([0, 1, CREDIT_BYTES, CREDIT_BYTES + 1].map(credits_for), [1, 1, 1, 2]);
        assert_eq!(credits_for(usize::MAX), u32::MAX);
    }

    #[test]
    fn own_credits_first_then_floating_then_wait() {
        let mut ledger = CreditLedger::new(2);
        assert_eq!(ledger.handle_send(2, 3), Admission::Admitted { floating: 0 });
        assert_eq!(ledger.handle_send(2, 3), Admission::Admitted { floating: 2 });
        assert_eq!(ledger.handle_send(2, 1), Admission::Wait);
        assert_eq!(CreditLedger::from_bits(2, ledger.to_bits()), ledger);
        assert_eq!(ledger.handle_consumed(2), 2);
        assert_eq!(ledger.handle_consumed(2), 0);
        assert_eq!(ledger.in_use(), 0);
    }

    #[test]
    fn what_is_larger_than_everything_goes_alone() {
        let mut ledger = CreditLedger::new(2);
        assert_eq!(ledger.handle_send(100, 3), Admission::Admitted { floating: 3 });
        assert_eq!(ledger.handle_send(1, 0), Admission::Wait);
        assert_eq!(ledger.handle_consumed(100), 3);
        assert_eq!(ledger.handle_send(1, 0), Admission::Admitted { floating: 0 });
    }

    proptest! {
        #[test]
        fn floating_credits_are_never_lost_or_made(
            steps in proptest::collection::vec((any::<bool>(), 1u32..6), 0..200), exclusive in 0u32..4
        ) {
            let (mut ledger, mut floating, mut queue) = (CreditLedger::new(exclusive), 5u32, VecDeque::new());
            for (send, cost) in steps {
                if send {
                    if let Admission::Admitted { floating: taken } = ledger.handle_send(cost, floating) {
                        floating -= taken;
                        queue.push_back(cost);
                    }
                } else if let Some(cost) = queue.pop_front() {
                    floating += ledger.handle_consumed(cost);
                }
                prop_assert_eq!(ledger.in_use(), queue.iter().sum::<u32>());
                prop_assert!(queue.len() <= 1 || ledger.in_use() <= exclusive + 5);
            }
            while let Some(cost) = queue.pop_front() { floating += ledger.handle_consumed(cost); }
            prop_assert_eq!(floating, 5);
        }
    }
}
