//! The steps of a recall, in order, and the one place that builds a response.

use std::time::Instant;

use super::Recall;
use super::arms::{self, Arm, external, temporal};
use super::buffers::FusionBuffers;
use super::candidates::Candidates;
use super::explain::{Evidence, Probe};
use super::feedback::{self, Feedback};
use super::filtered_scores::FilteredScores;
use super::fusion::{self, Fused};
use super::relevance::Gauge;
use super::score_stats::ScoreStats;
use super::turns::{Added, Turns};
use super::{boost, hits, relevance};
use crate::api::{RecallResponse, Result};

/// Answers a recall from `candidates`; `probe` reports what became of certain memories.
pub(super) fn answer(
    recall: Recall<'_>,
    candidates: &mut impl Candidates,
    buffers: &mut FusionBuffers,
    probe: Option<&mut Probe<'_>>,
) -> Result<RecallResponse> {
    let mut arms = candidates.search();
    arms.extend(temporal_arm(recall, buffers));
    let unknown_external = external::append(recall, &mut arms);
    candidates.rank(&mut arms)?;
    let units: Vec<ScoreStats> = arms.iter().map(|arm| arm.stats).collect();
    let feedback = feedback::search(recall, candidates, &mut arms, &units, buffers)?;
    let FusionBuffers {
        temporal, versions, ..
    } = buffers;
    let mut fused = fusion::fuse(
        recall,
        &arms,
        &units,
        candidates,
        &temporal.values,
        versions,
    );
    let scores = candidates.scores(&temporal.values);
    feedback.keep_first(&mut fused);
    let gauge = Gauge::new(recall, scores);
    let lead = relevance::lead(recall, &gauge, &fused, &arms, scores);
    let turns = Turns::of(recall);
    let subject = turns
        .as_ref()
        .and_then(|turns| turns.evidence(&gauge, &fused));
    let added = turns.as_ref().map_or_else(Added::default, |turns| {
        turns.apply(&mut fused, feedback.terms > 0)
    });
    let turn_micros = turns.as_ref().map_or(0.0, Turns::micros);
    let mut built = hits::build(recall, &gauge, &fused, &added, &arms, scores)?;
    let boost_micros = boost::apply(recall, feedback.terms > 0, &mut built.hits);
    if let Some(probe) = probe {
        probe.examine(&Evidence {
            recall,
            arms: &arms,
            units: &units,
            candidates,
            scores,
            fused: &fused,
            added: &added,
        })?;
    }
    Ok(RecallResponse {
        confidence: lead.map(|lead| relevance::confidence(lead, subject)),
        lead,
        subject,
        turn_micros,
        boost_micros,
        unknown_external,
        plan: candidates.plan(),
        ..response(recall, &arms, &fused, &feedback, built)
    })
}

/// The temporal arm, where the request has time windows and a weight for them.
fn temporal_arm(recall: Recall<'_>, buffers: &mut FusionBuffers) -> Option<Arm> {
    let request = recall.request;
    if request.time_windows.is_empty() || request.weights[2] == 0.0 {
        return None;
    }
    let start = Instant::now();
    let FusionBuffers {
        temporal,
        selection,
        ..
    } = buffers;
    let any = temporal::score(recall, temporal);
    let mut arm = Arm::new(arms::TEMPORAL, start);
    if any {
        let scores = FilteredScores::of(&temporal.values, recall.allowed);
        arm.measure(&scores, recall);
        // Most memories are outside a window: only those nearer to it than usual are proposed.
        let floor = arm.stats.mean as f32;
        arm.rank(&scores, floor, recall, selection);
        arm.micros = arms::micros_since(start);
    }
    Some(arm)
}

fn response(
    recall: Recall<'_>,
    arms: &[Arm],
    fused: &[Fused],
    feedback: &Feedback,
    built: hits::Built,
) -> RecallResponse {
    let stats = arms.iter().map(|arm| arm.stats);
    RecallResponse {
        hits: built.hits,
        truncated: built.truncated,
        arm_names: arms.iter().map(|arm| arm.name.clone()).collect(),
        arm_micros: arms.iter().map(|arm| arm.micros).collect(),
        arm_candidates: arms.iter().map(|arm| arm.ranked.len() as u32).collect(),
        arm_stats: stats.map(|stats| (stats.mean, stats.deviation)).collect(),
        feedback_micros: feedback.micros,
        feedback_terms: feedback.terms,
        candidates: fused.len() as u32,
        allowed: recall.allowed.versions.len(),
        position: recall.index.position,
        ..RecallResponse::default()
    }
}
