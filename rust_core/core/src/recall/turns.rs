//! Turns of conversations: evidence about the speaker whom a query names, and boosts of the first candidates.
//!
//! A query that names one known speaker asks for what this speaker said. A short question is mostly answered by the
//! next turn of another speaker, which shares few words with the query. What happened at a time that the query names is
//! nearer to an answer than what only speaks of it. Labels that rows have tell speakers and kinds of turns.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use roaring::RoaringBitmap;

use super::Recall;
use super::arms::micros_since;
use super::boost::standing;
use super::fusion::{Fused, sort};
use super::relevance::Gauge;
use crate::api::{
    ADDRESS, Boost, FIRST_NAME, QUESTION, SPEAKER_KEY, SubjectEvidence, TURN_KEY, TurnBoosts,
    WHOLE_NAME,
};
use crate::index::columns::NO_TIME;
use crate::index::labels::{Label, Labels};
use crate::index::neighbours::lookup::{NOBODY, Neighbours};

/// Candidates that are boosted and read for evidence: with 30 or 50 the development sets gain nothing more.
const FIRST: usize = 20;

/// Names of the boosts in hits.
static SPEAKER: LazyLock<Arc<str>> = LazyLock::new(|| "speaker".into());
static ASKING: LazyLock<Arc<str>> = LazyLock::new(|| "question".into());
static REPLY: LazyLock<Arc<str>> = LazyLock::new(|| "reply".into());
static DATE: LazyLock<Arc<str>> = LazyLock::new(|| "date".into());

/// The request's boosts of turns, and the speaker whom the query names.
pub(super) struct Turns<'a> {
    recall: Recall<'a>,
    boosts: &'a TurnBoosts,
    subject: Option<Subject<'a>>,
    start: Instant,
}

/// The one known speaker whom the query names.
struct Subject<'a> {
    /// The turns of this speaker.
    said: &'a RoaringBitmap,
    /// The bits of the name's stems.
    name: u64,
}

/// The amounts that were added to the scores of versions, in their order.
#[derive(Default)]
pub(super) struct Added {
    boosts: Vec<(u32, Boost)>,
    /// The fused score of one deviation, where there are boosts.
    unit: f64,
}

impl Added {
    /// The boosts of a version.
    pub(super) fn of(&self, version: u32) -> Vec<Boost> {
        let own = self.boosts.iter().filter(|boost| boost.0 == version);
        own.map(|boost| boost.1.clone()).collect()
    }

    /// The sum of a version's boosts in deviations.
    pub(super) fn lift(&self, version: u32) -> f64 {
        let own = self.boosts.iter().filter(|boost| boost.0 == version);
        own.map(|boost| boost.1.value / self.unit).sum()
    }

    fn add(&mut self, fused: &mut Fused, name: &Arc<str>, value: f64) {
        fused.score += value;
        let name = Arc::clone(name);
        self.boosts.push((fused.version, Boost { name, value }));
    }
}

impl<'a> Turns<'a> {
    /// None where the request asks for no boosts of turns.
    pub(super) fn of(recall: Recall<'a>) -> Option<Self> {
        let start = Instant::now();
        let boosts = recall.request.turns.as_ref()?;
        Some(Self {
            recall,
            boosts,
            subject: subject(&recall.index.labels, boosts, &recall.query.name_bits),
            start,
        })
    }

    /// The microseconds since it was made.
    pub(super) fn micros(&self) -> f64 {
        micros_since(self.start)
    }

    /// The evidence of the first candidates about the speaker whom the query names.
    pub(super) fn evidence(&self, gauge: &Gauge<'_>, fused: &[Fused]) -> Option<SubjectEvidence> {
        let subject = self.subject.as_ref()?;
        let labels = &self.recall.index.labels;
        let addresses = labels.versions(Label::Metadata(TURN_KEY, ADDRESS));
        let mut evidence = SubjectEvidence::default();
        for &Fused { version, .. } in fused.iter().take(FIRST) {
            let share = gauge.share_without(version, subject.name)?;
            let address = addresses.is_some_and(|set| set.contains(version));
            // What one tells another of the other counts as the other's.
            let best = if subject.said.contains(version) == address {
                &mut evidence.other
            } else {
                &mut evidence.own
            };
            *best = best.max(share);
        }
        Some(evidence)
    }

    /// Boosts the first of `fused` and puts all in order again. `kept` says that feedback kept the first hits, whose
    /// scores stand for their places alone.
    pub(super) fn apply(&self, fused: &mut [Fused], kept: bool) -> Added {
        let first = FIRST.min(fused.len());
        let before: Vec<Fused> = fused[..(first + 1).min(fused.len())].to_vec();
        if kept {
            let scores: Vec<f64> = before.iter().map(|one| one.score).collect();
            let head = standing(&scores, self.boosts.standing * self.boosts.unit);
            for (one, score) in fused.iter_mut().zip(head) {
                one.score = score;
            }
        }
        let mut added = Added {
            unit: self.boosts.unit,
            ..Added::default()
        };
        self.lift_speaker(&mut fused[..first], &mut added);
        self.lift_dates(&mut fused[..first], &mut added);
        self.order_questions(fused, first, &mut added);
        if added.boosts.is_empty() {
            fused[..before.len()].copy_from_slice(&before);
        } else {
            sort(fused, &self.recall.index.columns.memory_id);
        }
        added
    }

    fn lift_speaker(&self, first: &mut [Fused], added: &mut Added) {
        let Some(subject) = self.subject.as_ref().filter(|_| self.boosts.speaker != 0.0) else {
            return;
        };
        for one in first
            .iter_mut()
            .filter(|one| subject.said.contains(one.version))
        {
            added.add(one, &SPEAKER, self.boosts.speaker * self.boosts.unit);
        }
    }

    fn lift_dates(&self, first: &mut [Fused], added: &mut Added) {
        let windows = &self.boosts.date_windows;
        if windows.is_empty() || self.boosts.date == 0.0 {
            return;
        }
        let times = &self.recall.index.columns.occurred_at;
        for one in first {
            let time = times[one.version as usize];
            let inside = |&(start, end): &(i64, i64)| start <= time && time <= end;
            if time != NO_TIME && windows.iter().any(inside) {
                added.add(one, &DATE, self.boosts.date * self.boosts.unit);
            }
        }
    }

    /// Lowers the questions among the first candidates, and moves the replies to them half-way up to where these were.
    fn order_questions(&self, fused: &mut [Fused], first: usize, added: &mut Added) {
        let labels = &self.recall.index.labels;
        let asking = labels.versions(Label::Metadata(TURN_KEY, QUESTION));
        let Some(asking) = asking.filter(|_| self.boosts.question != 0.0) else {
            return;
        };
        let mut questions: Vec<usize> = (0..first)
            .filter(|&place| asking.contains(fused[place].version))
            .collect();
        // A question may reply to another, which then decides first.
        questions.sort_by(|&a, &b| fused[b].score.total_cmp(&fused[a].score));
        for place in questions {
            let Some(reply) = self.reply(fused[place].version) else {
                continue;
            };
            let top = fused[place].score;
            added.add(
                &mut fused[place],
                &ASKING,
                -self.boosts.question * self.boosts.unit,
            );
            let found = fused.iter_mut().find(|one| one.version == reply);
            if let Some(found) = found.filter(|found| found.score < top) {
                let rise = (top - found.score) / 2.0;
                added.add(found, &REPLY, rise);
            }
        }
    }

    /// The next turn, where another speaker has it.
    fn reply(&self, version: u32) -> Option<u32> {
        let Recall { index, allowed, .. } = self.recall;
        let [next, _] = Neighbours::of(index, allowed.versions, version).after;
        if next == NOBODY {
            return None;
        }
        let speaker = |version| index.labels.marked(version, SPEAKER_KEY, WHOLE_NAME);
        let other = speaker(next)?;
        (speaker(version) != Some(other)).then_some(next)
    }
}

/// The speaker of whom alone the query has a name.
fn subject<'a>(labels: &'a Labels, boosts: &TurnBoosts, bits: &[u64]) -> Option<Subject<'a>> {
    // Without words to search for there are no stems, and so no evidence.
    let bits = bits.iter().copied().chain(std::iter::repeat(0));
    let mut found = boosts.names.iter().zip(bits).flat_map(|(name, bits)| {
        [WHOLE_NAME, FIRST_NAME]
            .into_iter()
            .filter_map(move |mark| {
                let said =
                    labels.versions(Label::Metadata(SPEAKER_KEY, &format!("{mark}{name}")))?;
                Some(Subject { said, name: bits })
            })
    });
    let subject = found.next()?;
    found.next().is_none().then_some(subject)
}
