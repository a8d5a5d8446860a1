//! How many calls, or connections, there are, and may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::Status;

use super::RoomOptions;

/// A bounded number of places.
#[derive(Clone)]
pub(super) struct Places {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// One that is taken, until it is dropped.
pub(super) struct Place(Arc<AtomicUsize>);

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self {
            taken: Arc::default(),
            most,
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// One more, where there is no limit.
    pub(super) fn count(&self) -> Place {
        self.taken.fetch_add(1, Ordering::AcqRel);
        Place(self.taken.clone())
    }

    /// A place, if there is one.
    pub(super) fn take(&self) -> Option<Place> {
        if self.taken.fetch_add(1, Ordering::AcqRel) < self.most {
            return Some(Place(self.taken.clone()));
        }
        self.taken.fetch_sub(1, Ordering::AcqRel);
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A kind of calls that are refused when there are too many of them, as [`RoomOptions`] says.
pub(super) struct Room {
    places: Places,
    refusals: Vec<Status>,
    refused: AtomicUsize,
}

impl Room {
    pub(super) fn new(options: &RoomOptions) -> Self {
        Self {
            places: Places::new(options.most),
            refusals: options.refusals.clone(),
            refused: AtomicUsize::new(0),
        }
    }

    /// A place, or what the caller is told; each of the answers in its turn.
    pub(super) fn take(&self) -> Result<Place, Status> {
        self.places.take().ok_or_else(|| {
            let turn = self.refused.fetch_add(1, Ordering::Relaxed);
            let refusal = self.refusals.get(turn % self.refusals.len().max(1));
            refusal.cloned().unwrap_or_else(|| {
                Status::resource_exhausted("the server has no room for more calls of this kind")
            })
        })
    }
}
