//! State of a subtask rather than of a key.

use super::{Handle, batch_of, rows_of, spec_of};
use crate::host::OperatorHandle;
use crate::manifest::{StateKind, StateSpec};
use crate::row::State;

/// Items of a subtask. When the parallelism changes they are dealt out anew.
pub struct OperatorState<T: State>(Items<T>);

/// Items of a subtask. When the parallelism changes, every subtask is given all of them.
pub struct UnionState<T: State>(Items<T>);

struct Items<T> {
    host: OperatorHandle,
    items: Vec<T>,
    changed: bool,
}

impl<T: State + Clone> Items<T> {
    fn open(name: &str) -> Result<Self, String> {
        let host = OperatorHandle::open(name)?;
        let items = rows_of(&host.read(), name);
        Ok(Self { host, items, changed: false })
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.host.replace(batch_of(self.items.iter().cloned()));
        }
    }
}

macro_rules! operator_state {
    ($($state:ident => $kind:ident),*) => {
        $(impl<T: State + Clone> $state<T> {
            /// The items; after `open` the restored ones.
            pub fn get(&self) -> &[T] {
                &self.0.items
            }

            /// The items to change.
            pub fn get_mut(&mut self) -> &mut Vec<T> {
                self.0.changed = true;
                &mut self.0.items
            }
        }

        impl<T: State + Clone> Handle for $state<T> {
            const KEYED: bool = false;

            fn spec(name: &str) -> StateSpec {
                spec_of::<T>(name, StateKind::$kind)
            }

            fn open(name: &str) -> Result<Self, String> {
                Items::open(name).map(Self)
            }

            fn begin(&mut self, _: usize) {}

            fn select(&mut self, _: usize) {}

            fn flush(&mut self) {
                self.0.flush();
            }
        })*
    };
}

operator_state!(OperatorState => OperatorSplit, UnionState => OperatorUnion);
