//! The arms of external lists, which other systems ranked.

use std::borrow::Cow;
use std::time::Instant;

use hashbrown::HashSet;

use super::{Arm, SEMANTIC};
use crate::api::ExternalList;
use crate::recall::Recall;
use crate::topk::Scored;

/// Appends an arm for each external list and returns the number of ids that this bank does not hold.
pub(crate) fn append(recall: Recall<'_>, arms: &mut Vec<Arm>) -> u32 {
    let mut unknown = 0;
    for (number, list) in recall.request.external.iter().enumerate() {
        let start = Instant::now();
        let (mut ranked, missing) = ranked(recall, list);
        ranked.truncate(recall.request.depth);
        unknown += missing;
        let mut arm = Arm::new(SEMANTIC, start);
        arm.name = Cow::Owned(list.name.clone());
        (arm.ranked, arm.external) = (ranked, Some(number));
        arms.push(arm);
    }
    unknown
}

/// The listed memories that pass, and the number of those that the bank does not hold.
fn ranked(recall: Recall<'_>, list: &ExternalList) -> (Vec<Scored>, u32) {
    let Recall { index, allowed, .. } = recall;
    let mut unknown = 0;
    let mut ranked: Vec<Scored> = Vec::with_capacity(list.hits.len());
    let mut known = HashSet::with_capacity(list.hits.len());
    for (id, score) in &list.hits {
        let (mut is_here, mut passing) = (false, None);
        for version in index.columns.versions_of(id) {
            is_here = true;
            if allowed.versions.contains(version) {
                passing = passing.max(Some(version));
            }
        }
        unknown += u32::from(!is_here);
        if let Some(version) = passing
            && known.insert(version)
        {
            ranked.push((*score as f32, version));
        }
    }
    (ranked, unknown)
}
