//! The index of a bank in memory, and its lock.

mod apply;
pub(crate) mod columns;
mod compact;
pub(crate) mod conversations;
pub(crate) mod labels;
mod lock;
mod near_duplicates;
pub(crate) mod neighbours;
mod state;
pub(crate) mod tier;

pub(crate) use apply::{prepare, units};
pub(crate) use compact::compact;
pub(crate) use lock::{Changing, IndexLock, Intending};
pub(crate) use state::Index;
