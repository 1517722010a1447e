//! The host in memory, for functions under plain `cargo test`: one a thread, as a component has one a store.

pub(crate) mod rows;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use self::rows::{StoredRow, join, split};
use super::{Cells, Entries, Runs};
use crate::bits::{BitBuilder, is_set};
use crate::column::{Batch, ColumnSpec, VarValues};
use crate::context::{Level, TaskInfo};
use crate::manifest::FunctionSpec;
use crate::time::Clock;

/// A key as the harness encodes it.
pub(crate) type KeyBytes = Vec<u8>;

/// What the host holds for the function under test.
pub(crate) struct Host {
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) logs: Vec<(Level, String)>,
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) gauges: BTreeMap<String, f64>,
    pub(crate) now: i64,
    pub(crate) seed: u64,
    /// Keys of the current call, by position.
    pub(crate) keys: Vec<KeyBytes>,
    /// Pending timers, in the order in which they fire.
    pub(crate) timers: BTreeSet<(Clock, i64, KeyBytes)>,
    /// Calls that crossed the boundary, so that a test can hold their number.
    pub(crate) calls: usize,
    columns: BTreeMap<String, Vec<ColumnSpec>>,
    values: BTreeMap<(String, KeyBytes), StoredRow>,
    lists: BTreeMap<(String, KeyBytes), Vec<StoredRow>>,
    maps: BTreeMap<(String, KeyBytes), BTreeMap<Vec<u8>, StoredRow>>,
    operator: BTreeMap<String, Batch>,
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::new(Host::for_function(None));
}

impl Host {
    fn for_function(spec: Option<&FunctionSpec>) -> Self {
        let states = spec.map(|spec| spec.states.as_slice()).unwrap_or_default();
        Self {
            parameters: BTreeMap::new(),
            logs: Vec::new(),
            counts: BTreeMap::new(),
            gauges: BTreeMap::new(),
            now: 0,
            seed: 0,
            keys: Vec::new(),
            timers: BTreeSet::new(),
            calls: 0,
            columns: states.iter().map(|state| (state.name.clone(), state.columns.clone())).collect(),
            values: BTreeMap::new(),
            lists: BTreeMap::new(),
            maps: BTreeMap::new(),
            operator: BTreeMap::new(),
        }
    }

    fn columns(&self, state: &str) -> &[ColumnSpec] {
        self.columns.get(state).map(Vec::as_slice).unwrap_or_default()
    }

    fn key(&self, position: u32) -> KeyBytes {
        match self.keys.get(position as usize) {
            Some(key) => key.clone(),
            None => panic!("key position {position} is out of range: the call has {} keys", self.keys.len()),
        }
    }

    fn cells<'a>(&self, state: &str, rows: impl Iterator<Item = Option<&'a StoredRow>>) -> Cells {
        let rows: Vec<_> = rows.collect();
        let mut present = BitBuilder::with_capacity(rows.len());
        rows.iter().for_each(|row| present.push(row.is_some()));
        Cells { present: present.finish(), values: join(self.columns(state), &rows) }
    }

    fn check_open(&self, state: &str) -> Result<(), String> {
        match self.columns.contains_key(state) {
            true => Ok(()),
            false => Err(format!("state `{state}` is not in the function's specification")),
        }
    }
}

/// Starts anew for a function.
pub(crate) fn install(spec: &FunctionSpec) {
    HOST.set(Host::for_function(Some(spec)));
}

/// Looks at the host or changes it.
pub(crate) fn with<T>(look: impl FnOnce(&mut Host) -> T) -> T {
    HOST.with_borrow_mut(look)
}

/// A call over the boundary.
fn call<T>(look: impl FnOnce(&mut Host) -> T) -> T {
    with(|host| {
        host.calls += 1;
        look(host)
    })
}

pub(crate) fn log(level: Level, message: &str) {
    call(|host| host.logs.push((level, message.to_owned())));
}

pub(crate) fn parameter(name: &str) -> Option<String> {
    call(|host| host.parameters.get(name).cloned())
}

pub(crate) fn count(metric: &str, by: u64) {
    call(|host| *host.counts.entry(metric.to_owned()).or_default() += by);
}

pub(crate) fn gauge(metric: &str, value: f64) {
    call(|host| host.gauges.insert(metric.to_owned(), value));
}

pub(crate) fn task() -> TaskInfo {
    TaskInfo { job: "test".to_owned(), operator: "test".to_owned(), subtask: 0, parallelism: 1, attempt: 0 }
}

pub(crate) fn now() -> i64 {
    call(|host| host.now)
}

pub(crate) fn random() -> u64 {
    call(|host| {
        host.seed += 1;
        host.seed
    })
}

pub(crate) fn set_timers(clock: Clock, keys: &[u32], times: &[i64]) {
    call(|host| {
        for (&key, &time) in keys.iter().zip(times) {
            let key = host.key(key);
            host.timers.insert((clock, time, key));
        }
    });
}

pub(crate) fn clear_timers(clock: Clock, keys: &[u32], times: &[i64]) {
    call(|host| {
        for (&key, &time) in keys.iter().zip(times) {
            let key = host.key(key);
            host.timers.remove(&(clock, time, key));
        }
    });
}

/// A value state.
pub(crate) struct ValueHandle(String);

impl ValueHandle {
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        with(|host| host.check_open(name).map(|()| Self(name.to_owned())))
    }

    pub(crate) fn read(&self, keys: &[u32]) -> Cells {
        call(|host| {
            let keys: Vec<_> = keys.iter().map(|&key| (self.0.clone(), host.key(key))).collect();
            host.cells(&self.0, keys.iter().map(|key| host.values.get(key)))
        })
    }

    pub(crate) fn write(&self, keys: &[u32], cells: Cells) {
        call(|host| {
            for (at, row) in split(cells.values).into_iter().enumerate() {
                let key = (self.0.clone(), host.key(keys[at]));
                match is_set(&cells.present, at) {
                    true => host.values.insert(key, row),
                    false => host.values.remove(&key),
                };
            }
        });
    }
}

/// A list state.
pub(crate) struct ListHandle(String);

impl ListHandle {
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        with(|host| host.check_open(name).map(|()| Self(name.to_owned())))
    }

    pub(crate) fn read(&self, keys: &[u32]) -> Runs {
        call(|host| {
            let mut items: Vec<Option<&StoredRow>> = Vec::new();
            let mut offsets = vec![0];
            for &key in keys {
                let list = host.lists.get(&(self.0.clone(), host.key(key)));
                items.extend(list.into_iter().flatten().map(Some));
                offsets.push(items.len() as u32);
            }
            Runs { offsets, items: join(host.columns(&self.0), &items) }
        })
    }

    pub(crate) fn append(&self, keys: &[u32], items: Runs) {
        call(|host| {
            let mut rows = split(items.items).into_iter();
            for (run, &key) in items.offsets.windows(2).zip(keys) {
                let key = (self.0.clone(), host.key(key));
                let added = rows.by_ref().take((run[1] - run[0]) as usize);
                host.lists.entry(key).or_default().extend(added);
            }
        });
    }

    pub(crate) fn clear(&self, keys: &[u32]) {
        call(|host| {
            for &key in keys {
                let key = (self.0.clone(), host.key(key));
                host.lists.remove(&key);
            }
        });
    }
}

/// A map state.
pub(crate) struct MapHandle(String);

impl MapHandle {
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        with(|host| host.check_open(name).map(|()| Self(name.to_owned())))
    }

    pub(crate) fn read(&self, keys: &[u32], map_keys: VarValues) -> Cells {
        call(|host| {
            let keys: Vec<_> = keys.iter().map(|&key| (self.0.clone(), host.key(key))).collect();
            let maps = keys.iter().map(|key| host.maps.get(key)).enumerate();
            host.cells(&self.0, maps.map(|(at, map)| map.and_then(|map| map.get(map_keys.row(at)))))
        })
    }

    pub(crate) fn write(&self, keys: &[u32], map_keys: VarValues, cells: Cells) {
        call(|host| {
            for (at, row) in split(cells.values).into_iter().enumerate() {
                let key = (self.0.clone(), host.key(keys[at]));
                let map = host.maps.entry(key).or_default();
                match is_set(&cells.present, at) {
                    true => map.insert(map_keys.row(at).to_vec(), row),
                    false => map.remove(map_keys.row(at)),
                };
            }
        });
    }

    pub(crate) fn scan(&self, keys: &[u32], start: Option<&[u8]>, limit: u32) -> Entries {
        call(|host| {
            let (mut offsets, mut map_keys) = (vec![0], VarValues::default());
            let mut items: Vec<Option<&StoredRow>> = Vec::new();
            for &key in keys {
                let map = host.maps.get(&(self.0.clone(), host.key(key)));
                let after =
                    map.into_iter().flatten().skip_while(|(map_key, _)| Some(map_key.as_slice()) < start);
                for (map_key, row) in after.take(limit as usize) {
                    map_keys.push(map_key);
                    items.push(Some(row));
                }
                offsets.push(items.len() as u32);
            }
            Entries { offsets, map_keys, values: join(host.columns(&self.0), &items) }
        })
    }

    pub(crate) fn clear(&self, keys: &[u32]) {
        call(|host| {
            for &key in keys {
                let key = (self.0.clone(), host.key(key));
                host.maps.remove(&key);
            }
        });
    }
}

/// An operator state.
pub(crate) struct OperatorHandle(String);

impl OperatorHandle {
    pub(crate) fn open(name: &str) -> Result<Self, String> {
        with(|host| host.check_open(name).map(|()| Self(name.to_owned())))
    }

    pub(crate) fn read(&self) -> Batch {
        call(|host| match host.operator.get(&self.0) {
            Some(items) => items.clone(),
            None => join(host.columns(&self.0), &[]),
        })
    }

    pub(crate) fn replace(&self, items: Batch) {
        call(|host| host.operator.insert(self.0.clone(), items));
    }
}
