//! Grants: how credits get to a sender in another process.
//!
//! Within a process both ends book in one ledger. A sender elsewhere is *granted* credits: they count as in use from then
//! on, come with what it sends, and are free again when that has been consumed. What a channel has of its own is granted
//! at once and again as it comes free, many at a time, so that not each costs a message. Floating credits are granted
//! when the sender says what it cannot send, or sends so fast that it is about to run out: then the *level* doubles up to
//! which it is kept in credit while nobody else waits for them, until it falls quiet and gives back what it has. Every number is of the receiver's own making, so a sender that goes beyond what it has is found out.

use crate::CREDIT_BYTES;

/// What the receiver knows of the sender of one channel.
#[derive(Clone, Debug)]
pub struct GrantBook {
    exclusive: u32,
    unused: u32,
    granted: u64,
    /// What the sender cannot send before it has so many.
    needed: u32,
    /// As many credits are to be in use, if the gate has them.
    level: u32,
}

/// Credits to be taken from the ledger and the gate for a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The sender waits for them; for something that fits nowhere it gets them once its channel is empty.
    Needed(u32),
    /// They are the channel's own.
    Own(u32),
    /// The sender would soon wait: as many of them as nobody else has a use for.
    Welcome(u32),
}

/// A sender has gone beyond what it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{used} credits were used of {unused} granted, {CREDIT_BYTES} bytes each")]
pub struct Overrun {
    /// What it used.
    pub used: u32,
    /// What it had.
    pub unused: u32,
}

impl GrantBook {
    /// Of a channel with `exclusive` credits of its own.
    pub fn new(exclusive: u32) -> Self {
        Self { exclusive, unused: 0, granted: 0, needed: 0, level: exclusive }
    }

    /// Credits that the sender has and has not used, as far as is known here.
    pub fn unused(&self) -> u32 {
        self.unused
    }

    /// All credits that have ever been granted.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Whether the sender waits for credits.
    pub fn is_waiting(&self) -> bool {
        self.needed > self.unused
    }

    /// Something of `cost` has come from a sender that has little left, or enough, while `in_use` credits are in use.
    pub fn handle_data(&mut self, cost: u32, little_left: bool, in_use: u32) -> Result<(), Overrun> {
        self.take(cost)?;
        self.needed = 0;
        if little_left {
            self.level = self.level.max(in_use.saturating_add(in_use.max(cost)));
        }
        Ok(())
    }

    /// The sender waits for something of `cost`.
    pub fn handle_want(&mut self, cost: u32) {
        self.needed = cost;
    }

    /// The sender gives credits back, which are free again.
    pub fn handle_return(&mut self, credits: u32) -> Result<(), Overrun> {
        self.level = self.exclusive;
        self.take(credits)
    }

    /// What to ask the ledger for while `in_use` credits of the channel are; the first one counts most.
    pub fn asks(&self, in_use: u32) -> impl Iterator<Item = Ask> + use<> {
        let needed = self.needed.saturating_sub(self.unused);
        let own = self.exclusive.saturating_sub(in_use);
        let more = self.level.saturating_sub(in_use.max(self.exclusive));
        let unasked = |credits: u32| credits > 0 && needed == 0 && in_use <= self.next_ask();
        [
            (needed > 0).then_some(Ask::Needed(needed)),
            unasked(own).then_some(Ask::Own(own)),
            unasked(more).then_some(Ask::Welcome(more)),
        ]
        .into_iter()
        .flatten()
    }

    /// Once no more credits than that are in use, some are granted unasked: as many as are worth a message, or any if the
    /// sender has none.
    pub fn next_ask(&self) -> u32 {
        let worth_a_message = if self.unused == 0 { 1 } else { self.level.div_ceil(2) };
        self.level.saturating_sub(worth_a_message)
    }

    /// The ledger has given what was asked for, or a part.
    pub fn handle_granted(&mut self, ask: Ask, credits: u32) {
        self.unused += credits;
        self.granted += u64::from(credits);
        if matches!(ask, Ask::Needed(_)) {
            self.needed = 0;
        }
    }

    fn take(&mut self, used: u32) -> Result<(), Overrun> {
        let unused = self.unused;
        self.unused = unused.checked_sub(used).ok_or(Overrun { used, unused })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::{Admission, CreditLedger};

    /// A receiver with one channel, and its sender.
    struct Channel {
        book: GrantBook,
        ledger: CreditLedger,
        floating: u32,
        balance: u32,
        held: VecDeque<u32>,
    }

    impl Channel {
        fn new(exclusive: u32, floating: u32) -> Self {
            let (book, ledger) = (GrantBook::new(exclusive), CreditLedger::new(exclusive));
            let mut channel = Self { book, ledger, floating, balance: 0, held: VecDeque::new() };
            channel.settle();
            channel
        }

        fn settle(&mut self) {
            for ask in self.book.asks(self.ledger.in_use()) {
                let credits = match ask {
                    Ask::Needed(credits) | Ask::Own(credits) => credits,
                    Ask::Welcome(credits) => credits.min(self.floating),
                };
                let unused = if matches!(ask, Ask::Needed(_)) { self.book.unused() } else { 0 };
                match self.ledger.handle_grant(credits, self.floating, unused) {
                    Admission::Admitted { floating } if credits > 0 => {
                        self.floating -= floating;
                        self.balance += credits;
                        self.book.handle_granted(ask, credits);
                    }
                    _ => {}
                }
            }
        }

        fn send(&mut self, cost: u32) -> bool {
            if cost > self.balance {
                self.book.handle_want(cost);
                self.settle();
            }
            let admitted = cost <= self.balance;
            if admitted {
                self.balance -= cost;
                let in_use = self.ledger.in_use();
                self.book.handle_data(cost, self.balance < 2 * cost, in_use).expect("it was granted");
                self.held.push_back(cost);
                self.settle();
            }
            admitted
        }

        fn consume(&mut self) {
            if let Some(cost) = self.held.pop_front() {
                self.floating += self.ledger.handle_consumed(cost);
                self.settle();
            }
        }

        fn give_back(&mut self, credits: u32) {
            self.balance -= credits;
            self.book.handle_return(credits).expect("it has them");
            self.floating += self.ledger.handle_consumed(credits);
        }
    }

    #[test]
    fn own_and_floating_credits_are_granted_before_they_are_needed() {
        let mut channel = Channel::new(2, 2);
        assert_eq!(channel.balance, 2);
        assert_eq!((0..9).take_while(|_| channel.send(1)).count(), 4);
        channel.consume();
        assert!(channel.send(1) && !channel.send(1));
    }

    #[test]
    fn what_is_larger_than_everything_goes_alone() {
        let mut channel = Channel::new(2, 2);
        assert!(channel.send(50) && !channel.send(1));
        channel.consume();
        assert!(channel.send(1) && !channel.send(50), "only through an empty channel");
        channel.consume();
        assert!(channel.send(50));
    }

    #[test]
    fn whoever_goes_beyond_what_was_granted_is_found_out() {
        let mut channel = Channel::new(2, 2);
        assert_eq!(channel.book.handle_data(3, false, 2), Err(Overrun { used: 3, unused: 2 }));
        assert_eq!(channel.book.handle_return(3), Err(Overrun { used: 3, unused: 2 }));
    }

    proptest! {
        #[test]
        fn credits_are_never_lost_or_made_and_nobody_waits_for_ever(
            steps in proptest::collection::vec((0u8..3, 1u32..6), 0..200), exclusive in 0u32..4
        ) {
            let mut channel = Channel::new(exclusive, 5);
            for (step, cost) in steps {
                match step {
                    0 => { channel.send(cost); }
                    1 => channel.consume(),
                    _ => channel.give_back(channel.balance.saturating_sub(exclusive).min(cost)),
                }
                let held: u32 = channel.held.iter().sum();
                prop_assert_eq!(channel.balance, channel.book.unused());
                prop_assert_eq!(channel.ledger.in_use(), held + channel.balance);
                prop_assert!(channel.held.len() <= 1 || channel.ledger.in_use() <= exclusive + 5);
            }
            while !channel.held.is_empty() { channel.consume(); }
            prop_assert!(channel.send(9), "an empty channel takes anything");
            channel.consume();
            channel.give_back(channel.balance.saturating_sub(exclusive));
            prop_assert_eq!(channel.floating, 5);
        }
    }
}
