//! The times of versions, with the first and last time of each stretch, so that most need not be read to find those
//! near an instant.

use std::ops::Range;

use super::{NO_TIME, push};

/// Versions in a stretch: those of a word of a set.
pub(crate) const STRETCH: usize = 64;

/// A time for each version, or [`NO_TIME`].
#[derive(Debug, Default)]
pub(crate) struct Times {
    all: Vec<i64>,
    /// The first and the last of each stretch; the other way round where it has none. What is removed does not narrow
    /// it.
    bounds: Vec<(i64, i64)>,
}

impl Times {
    pub(crate) fn push(&mut self, time: i64) {
        if self.all.len().is_multiple_of(STRETCH) {
            push(&mut self.bounds, bounds(&[]));
        }
        push(&mut self.all, time);
        if time != NO_TIME
            && let Some((first, last)) = self.bounds.last_mut()
        {
            *first = time.min(*first);
            *last = time.max(*last);
        }
    }

    /// Takes the time of a version.
    pub(crate) fn remove(&mut self, version: usize) {
        self.all[version] = NO_TIME;
    }

    /// The stretches of which a time may be from `first` to `last`, each with the versions in it.
    pub(crate) fn near(
        &self,
        first: i64,
        last: i64,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let bounds = self.bounds.iter().enumerate();
        bounds
            .filter(move |(_, bounds)| bounds.0 <= last && first <= bounds.1)
            .map(|(stretch, _)| {
                let begin = stretch * STRETCH;
                (stretch, begin..self.all.len().min(begin + STRETCH))
            })
    }

    /// Resident bytes.
    pub(super) fn bytes(&self) -> usize {
        self.all.capacity() * size_of::<i64>() + self.bounds.capacity() * size_of::<(i64, i64)>()
    }
}

impl From<Vec<i64>> for Times {
    fn from(all: Vec<i64>) -> Self {
        let bounds = all.chunks(STRETCH).map(bounds).collect();
        Self { all, bounds }
    }
}

impl std::ops::Deref for Times {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.all
    }
}

fn bounds(times: &[i64]) -> (i64, i64) {
    let some = times.iter().filter(|&&time| time != NO_TIME);
    some.fold((i64::MAX, i64::MIN), |(first, last), &time| {
        (first.min(time), last.max(time))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_stretches_hold_every_time_that_is_near() {
        let all: Vec<i64> = (0..1_000i64)
            .map(|at| match at % 13 {
                5 => NO_TIME,
                _ if at / 100 % 3 == 1 => 1_000_000_000 + at,
                _ => at * 97 % 5_000 - 2_500,
            })
            .chain([NO_TIME; 200])
            .collect();
        let mut pushed = Times::default();
        for &time in &all {
            pushed.push(time);
        }
        let made = Times::from(all.clone());
        assert_eq!((&pushed.all, &pushed.bounds), (&made.all, &made.bounds));
        for (first, last) in [(0, 100), (i64::MIN + 1, -2_400), (2_000, i64::MAX), (7, 6)] {
            let stretches: Vec<_> = pushed.near(first, last).collect();
            let inside = |time: &i64| *time != NO_TIME && (first..=last).contains(time);
            for (version, time) in all.iter().enumerate() {
                let covered = stretches.iter().any(|(_, range)| range.contains(&version));
                assert!(covered || !inside(time), "{version}");
            }
        }
        // Of every three hundred times the second hundred are far from the others.
        assert_eq!(pushed.near(1_000_000_000, i64::MAX).count(), 8);
        assert_eq!(pushed.near(i64::MAX - 1, i64::MAX).count(), 0);
        assert_eq!(pushed.near(i64::MIN + 1, -2_501).count(), 0);
        // Nothing has a time there.
        assert!(
            pushed
                .near(i64::MIN + 1, i64::MAX)
                .all(|(_, range)| range.start < 1_000)
        );
        pushed.remove(999);
        assert_eq!(pushed[999], NO_TIME);
    }
}
