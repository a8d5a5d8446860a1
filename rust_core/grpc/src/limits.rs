//! Limits on calls at once by kind, and on the bytes of requests that have not arrived completely.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SetOnce};
use tonic::Status;

use super::KindOptions;

/// Bytes of unfinished requests of one connection, of one principal, and of all together. Each is at least one message
/// of the largest size.
const CONNECTION_BYTES: usize = 32 << 20;
const PRINCIPAL_BYTES: usize = 64 << 20;
const TOTAL_BYTES: usize = 256 << 20;
/// Principals without a request are removed once so many are known, or twice as many as the last removal left.
const KEPT_PRINCIPALS: usize = 64;

/// The places of a kind of calls.
pub(super) struct Places {
    free: Arc<Semaphore>,
    refused: AtomicUsize,
}

/// The place of a call among those of its kind, and its turn among those of its connection.
pub(super) type Admission = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl Places {
    pub(super) fn new(options: &KindOptions) -> Self {
        Self {
            free: semaphore(options.places),
            refused: AtomicUsize::new(0),
        }
    }

    /// Takes a place, or returns the next of the refusals.
    pub(super) fn take(&self, refusals: &[Status]) -> Result<OwnedSemaphorePermit, Status> {
        self.free.clone().try_acquire_owned().map_err(|_| {
            let turn = self.refused.fetch_add(1, Ordering::Relaxed);
            let refusal = refusals.get(turn % refusals.len().max(1)).cloned();
            refusal.unwrap_or_else(|| Status::resource_exhausted("there is no room for more calls"))
        })
    }
}

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}

/// The memory for unfinished requests of all connections.
pub(super) struct RequestMemory {
    /// Bytes of the largest message.
    largest: usize,
    total: Arc<Semaphore>,
    /// By principal, and how many are kept.
    principals: Mutex<(HashMap<String, Weak<Semaphore>>, usize)>,
}

impl RequestMemory {
    pub(super) fn new(largest: usize) -> Self {
        Self {
            largest,
            total: semaphore(TOTAL_BYTES.max(largest)),
            principals: Mutex::new((HashMap::new(), KEPT_PRINCIPALS)),
        }
    }

    /// The share of a new connection.
    pub(super) fn connection(&self) -> Arc<Semaphore> {
        semaphore(CONNECTION_BYTES.max(self.largest))
    }

    fn principal(&self, name: &str) -> Arc<Semaphore> {
        let (known, kept) = &mut *self.principals.lock();
        if let Some(share) = known.get(name).and_then(Weak::upgrade) {
            return share;
        }
        if known.len() >= *kept {
            known.retain(|_, share| share.strong_count() > 0);
            *kept = KEPT_PRINCIPALS.max(2 * known.len());
        }
        let share = semaphore(PRINCIPAL_BYTES.max(self.largest));
        known.insert(name.to_owned(), Arc::downgrade(&share));
        share
    }
}

/// The memory budget of the request of one call.
pub(super) struct Budget {
    pub(super) memory: Arc<RequestMemory>,
    pub(super) connection: Arc<Semaphore>,
    pub(super) principal: SetOnce<Arc<Semaphore>>,
}

/// Memory for one message; dropping it gives the memory back.
pub(super) type Reservation = [Option<OwnedSemaphorePermit>; 3];

impl Budget {
    /// Says whose memory it is. The first name counts.
    pub(super) fn accept(&self, principal: &str) {
        let _ = self.principal.set(self.memory.principal(principal));
    }

    /// Returns true if [`Self::accept`] was called.
    pub(super) fn is_accepted(&self) -> bool {
        self.principal.initialized()
    }

    /// Waits for the principal, then for all the memory of a message: two that had a part each could wait for each other.
    pub(super) async fn reserve(self: Arc<Self>, bytes: u32) -> Reservation {
        let principal = self.principal.wait().await.clone();
        let mut reservation = [None, None, None];
        let shares = [
            self.connection.clone(),
            principal,
            self.memory.total.clone(),
        ];
        for (permit, share) in reservation.iter_mut().zip(shares) {
            // An error tells of a closed semaphore; none of these is ever closed.
            *permit = share.acquire_many_owned(bytes).await.ok();
        }
        reservation
    }
}
