//! A recall in a bank with segments: candidates from graphs and rare words, everything else only for these.
//!
//! The steps are those of the scan. Each arm proposes rows; their versions and their neighbours in conversations are
//! scored as the scan would score them; mean and deviation of all come from a sample ([`estimate`]). Of a candidate, the
//! keyword score is the scan's to the bit, and so is its cosine where it may be among the best.

mod estimate;
mod nearest;
mod rare_words;
mod scored;
mod sparse_scores;

use std::time::Instant;

use crate::api::Result;
use crate::api::{RecallRequest, RecallResponse};
use crate::dense::NO_SCORE;
use crate::index::Index;
use crate::index::neighbours::lookup::Neighbours;
use crate::lexical::LexicalIndex;
use crate::recall::filter::Allowed;
use crate::recall::fusion::{self, Fused};
use crate::recall::planner::Plan;
use crate::topk::{Scored, Selection, better_first};
use astrocyte_text::analysis::AnalyzedQuery;
use nearest as near;
use nearest::NearBuffers;
pub(crate) use nearest::{Comparison, SearchSample};
use rare_words as words;
use scored::{Look, Placed, make_exact};
use sparse_scores::{Scores, Words};

use crate::recall::arms::temporal::TimeScores;
use crate::recall::arms::{self, Arm, KEYWORD, SEMANTIC, temporal as times};
use crate::recall::feedback::{FIRST_HITS, Feedback, best_rows};
use crate::recall::{Query, boost as lift, hits};

/// What a recall of a large bank works with, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct LargeBuffers {
    scores: Scores,
    found: words::Found,
    near: NearBuffers,
}

/// Answers `request` by way of its candidates; with what a walk found, where it is to be compared with a scan. A recall
/// that is `alone` may take a second thread.
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one step of one pipeline"
)]
pub(crate) fn answer(
    state: &Index,
    request: &RecallRequest,
    query: &Query,
    allowed: Allowed<'_>,
    (plan, compare, alone): (&Plan, bool, bool),
    buffers: &mut LargeBuffers,
    (temporal, selection): (&mut TimeScores, &mut Selection),
    candidates: &mut Vec<u32>,
) -> Result<(RecallResponse, Option<SearchSample>)> {
    let LargeBuffers {
        scores,
        found,
        near,
    } = buffers;
    scores.grow(state);
    let mut look = Look {
        state,
        allowed,
        scores,
        windows: request.context_windows
            && !(state.conversations.timeline().is_empty()
                && state.conversations.session_count() == 0),
        linked: false,
    };
    let mut sample = Placed::new();
    // Neither touches what the other changes. A thread more pays only where a processor is idle, and has to wake first.
    let beside = alone && query.vector.is_some() && query.words.is_some();
    let (near, keyword) = both(
        beside,
        || near_arm(state, request, query, (allowed, plan), near),
        // Alone it may take a second thread itself. The walk lasts longer, so the sample goes with the words.
        || {
            sample = look_at_sample(&mut look, query);
            keyword_arm(state, request, query, (allowed, alone && !beside), found)
        },
    );
    let mut arms = Vec::with_capacity(3 + request.external.len());
    let (mut proposed, mut words) = (Vec::new(), Vec::new());
    if let Some((arm, rows)) = near {
        arms.push(arm);
        proposed = rows;
    }
    let walked = compare.then(|| SearchSample::new(state, allowed, &proposed));
    if let Some((arm, rows, looked_up)) = keyword {
        arms.push(arm);
        proposed.extend(rows);
        words.push(looked_up);
    }
    let unknown_external = arms::external(state, allowed, request, &mut arms);
    if !request.time_windows.is_empty() && request.weights[2] > 0.0 {
        let arm = temporal_arm(state, allowed, request, temporal, selection);
        // The scan has its arms in this order: those from outside are the last.
        let place = arms.iter().take_while(|arm: &&Arm| arm.external.is_none());
        arms.insert(place.count(), arm);
    }
    let mut room = Room {
        look,
        request,
        query,
        found,
        sample: &sample,
        temporal: &temporal.values,
        candidates,
        chosen: Placed::new(),
        alone,
    };
    let ranked = rank_twice(&mut room, &mut arms, &mut proposed, &mut words);
    let built = ranked.and_then(|(fused, looked)| {
        let (semantic, keyword) = (room.look.scores.semantic(), room.look.scores.keyword());
        let built = hits::build(state, request, &fused, &arms, (&semantic, &keyword));
        room.look.scores.put_back(semantic, keyword);
        Ok((built?, fused.len(), looked))
    });
    // Whatever went wrong, the next recall finds the arrays clean.
    room.look.scores.wipe(state);
    room.found.sums.clear();
    let ((mut hits, truncated), fused, looked) = built?;
    let lead = hits.first().map_or_else(Vec::new, |hit| hit.arms.clone());
    let lift_micros = lift::apply(state, request, looked.terms > 0, &mut hits);
    let response = RecallResponse {
        hits,
        arm_names: arms.iter().map(|arm| arm.name.clone()).collect(),
        arm_micros: arms.iter().map(|arm| arm.micros).collect(),
        arm_candidates: arms.iter().map(|arm| arm.ranked.len() as u32).collect(),
        feedback_micros: looked.micros,
        feedback_terms: looked.terms,
        lead,
        lift_micros,
        arm_spreads: arms
            .iter()
            .map(|arm| (arm.spread.mean, arm.spread.deviation))
            .collect(),
        candidates: fused as u32,
        allowed: allowed.versions.len(),
        plan: plan.to_string(),
        truncated,
        unknown_external,
        position: state.position,
    };
    Ok((response, walked))
}

/// What both give; where they are to be spread, the second on a thread of the pool.
fn both<A, B: Send>(
    spread: bool,
    here: impl FnOnce() -> A,
    there: impl FnOnce() -> B + Send,
) -> (A, B) {
    if !spread {
        return (here(), there());
    }
    let mut other = None;
    let own = rayon::in_place_scope(|scope| {
        scope.spawn(|_| other = Some(there()));
        here()
    });
    (own, other.expect("a scope ends after what it spawned"))
}

/// Rows near to the query's vector, where it has one.
fn near_arm(
    state: &Index,
    request: &RecallRequest,
    query: &Query,
    (allowed, plan): (Allowed<'_>, &Plan),
    buffers: &mut NearBuffers,
) -> Option<(Arm, Vec<u32>)> {
    let (_, quantised) = query.vector.as_ref()?;
    let start = Instant::now();
    let mut rows = Vec::new();
    near::propose(
        state,
        allowed,
        plan,
        quantised,
        request.depth,
        buffers,
        &mut rows,
    );
    Some((Arm::new(SEMANTIC, start), rows))
}

/// Rows that hold the query's words, where it has some.
fn keyword_arm(
    state: &Index,
    request: &RecallRequest,
    query: &Query,
    (allowed, spread): (Allowed<'_>, bool),
    found: &mut words::Found,
) -> Option<(Arm, Vec<u32>, Words)> {
    let query = query.words.as_ref()?;
    let start = Instant::now();
    let mut rows = Vec::new();
    let how = (request.depth, spread);
    let words = words::find(state, allowed, query, how, found, &mut rows);
    Some((Arm::new(KEYWORD, start), rows, words))
}

/// The memories that tell how the scores of all are spread, every n-th version that passes, with their cosines; whatever the
/// arms propose, they are the same.
fn look_at_sample(look: &mut Look<'_>, query: &Query) -> Placed {
    let passing = look.allowed.versions;
    let step = estimate::step(passing.len());
    let ask = |scores: &mut Scores, version| {
        if step == 1 {
            scores.ask(version);
        } else {
            scores.near.insert(version);
        }
    };
    let sample = look.place(passing.every(step).into_iter(), ask);
    let quantised = query.vector.as_ref().map(|(_, quantised)| quantised);
    look.scores.find_cosines(look.state, quantised);
    sample
}

/// Ranks and fuses, and does so once more with what the first hits add to the query.
fn rank_twice(
    room: &mut Room<'_, '_>,
    arms: &mut [Arm],
    proposed: &mut Vec<u32>,
    words: &mut Vec<Words>,
) -> Result<(Vec<Fused>, Feedback)> {
    let mut fused = room.rank(arms, proposed, words)?;
    let request = room.request;
    let Some(asked) = room.query.words.as_ref().filter(|_| request.feedback > 0.0) else {
        return Ok((fused, Feedback::default()));
    };
    let start = Instant::now();
    let first = fused[..fused.len().min(FIRST_HITS)].to_vec();
    let further = room.further(arms, asked, &first);
    if !further.is_empty() {
        let (state, allowed) = (room.look.state, room.look.allowed);
        proposed.clear();
        let (how, found) = ((request.depth, room.alone), &mut *room.found);
        words.push(words::find(state, allowed, &further, how, found, proposed));
        fused = room.rank(arms, proposed, words)?;
    }
    let micros = arms::micros_since(start);
    if let Some(arm) = arms.iter_mut().find(|arm| arm.name == KEYWORD) {
        arm.micros += micros;
    }
    let looked = Feedback::new(micros, further.terms.len() as u32, &first);
    looked.keep_first(&mut fused);
    Ok((fused, looked))
}

/// What the ranking of proposals works with.
struct Room<'a, 'b> {
    look: Look<'a>,
    request: &'a RecallRequest,
    query: &'a Query,
    found: &'b mut words::Found,
    /// What tells how scores are spread.
    sample: &'b Placed,
    temporal: &'b [f32],
    candidates: &'b mut Vec<u32>,
    /// What the arms propose and those beside it, in the order of their numbers.
    chosen: Placed,
    /// Whether a second thread may be taken.
    alone: bool,
}

impl Room<'_, '_> {
    /// Ranks the arms over what they and, new since the last time, these rows propose, and fuses them.
    fn rank(&mut self, arms: &mut [Arm], proposed: &[u32], words: &[Words]) -> Result<Vec<Fused>> {
        let start = Instant::now();
        let state = self.look.state;
        let outside = arms
            .iter()
            .filter(|arm| arm.external.is_some() || arm.name == arms::TEMPORAL);
        self.choose(outside.flat_map(|arm| &arm.ranked).map(|hit| hit.1));
        let proposed = || proposed.iter().map(|&row| state.version_of(row));
        self.choose(proposed());
        // They have a share of its score.
        let beside = |version| self.chosen.get(self.place(version).ok()?).map(|one| one.1);
        let beside: Vec<Neighbours> = proposed().filter_map(beside).collect();
        self.choose(beside.into_iter().flat_map(Neighbours::iter));
        let Self { look, request, .. } = self;
        let holders = self.found.holders(state);
        let whole = self.sample.len() == look.allowed.versions.len() as usize;
        let unread = !whole && words.iter().any(|words| words.unread().next().is_some());
        if unread {
            for version in self.sample.iter().flat_map(|&(one, near)| near.with(one)) {
                look.scores.sampled.insert(version);
            }
        }
        let closely = if whole {
            Vec::new()
        } else {
            estimate::look_closely(look, &holders, unread)
        };
        let quantised = self.query.vector.as_ref().map(|(_, quantised)| quantised);
        look.scores.evaluate(state, quantised, words, self.alone);
        if let Some((unit, query)) = &self.query.vector {
            make_exact(look, (unit, query), request.k, &self.chosen)?;
        }
        let spreads = [
            estimate::semantic(look, self.sample),
            estimate::keyword(look, self.sample, &holders, &closely),
        ];
        let smoothed = look.smooth(&self.chosen);
        for arm in &mut *arms {
            let (which, floor) = match (&*arm.name, arm.external) {
                (SEMANTIC, None) => (0, NO_SCORE),
                (KEYWORD, None) => (1, 0.0),
                _ => continue,
            };
            let scored = self.chosen.iter().zip(&smoothed);
            arm.ranked = scored
                .map(|(&(version, _), scores)| (scores[which], version))
                .filter(|&(score, _)| score > floor)
                .collect();
            let better = |a: &Scored, b: &Scored| better_first(*a, *b, &state.columns.memory_id);
            if request.depth < arm.ranked.len() {
                arm.ranked.select_nth_unstable_by(request.depth, better);
                arm.ranked.truncate(request.depth);
            }
            arm.ranked.sort_unstable_by(better);
            arm.spread = spreads[which];
        }
        if let Some(arm) = arms.first_mut() {
            arm.micros += arms::micros_since(start);
        }
        let scores = arms::Scores {
            semantic: &look.scores.smoothed_semantic.values,
            keyword: &look.scores.smoothed_keyword.values,
            temporal: self.temporal,
        };
        Ok(fusion::fuse(state, request, arms, scores, self.candidates))
    }

    /// Where a version is among the chosen, or would be.
    fn place(&self, version: u32) -> std::result::Result<usize, usize> {
        self.chosen.binary_search_by_key(&version, |&(one, _)| one)
    }

    /// Takes the versions among the chosen.
    fn choose(&mut self, versions: impl Iterator<Item = u32>) {
        let mut fresh = std::mem::take(self.candidates);
        fresh.clear();
        fresh.extend(versions.filter(|&version| self.place(version).is_err()));
        fresh.sort_unstable();
        fresh.dedup();
        let placed = self.look.place(fresh.iter().copied(), Scores::ask);
        self.chosen.extend(placed);
        self.chosen.sort_by_key(|&(version, _)| version);
        *self.candidates = fresh;
    }

    /// The words that the first hits add to the query.
    fn further(&mut self, arms: &[Arm], asked: &AnalyzedQuery, first: &[Fused]) -> AnalyzedQuery {
        let state = self.look.state;
        let (semantic, keyword) = (self.look.scores.semantic(), self.look.scores.keyword());
        let rows = best_rows(state, self.request, arms, (&semantic, &keyword), first);
        self.look.scores.put_back(semantic, keyword);
        state.lexical.feedback(asked, &rows, self.request.feedback)
    }
}

fn temporal_arm(
    state: &Index,
    allowed: Allowed<'_>,
    request: &RecallRequest,
    temporal: &mut TimeScores,
    selection: &mut Selection,
) -> Arm {
    let start = Instant::now();
    let some = times::score(state, allowed, request, temporal);
    let mut arm = Arm::new(arms::TEMPORAL, start);
    let scores = arms::Scores {
        semantic: &[],
        keyword: &[],
        temporal: &temporal.values,
    };
    if some {
        arm.rank(state, allowed, request.depth, scores, selection);
    }
    arm
}
