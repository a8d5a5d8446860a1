//! A request's filter, compiled to the set of versions and rows that pass, before any arm runs.

use crate::api::{RecallRequest, TagMatch};
use crate::bitmap::Bitmap;
use crate::index::Index;
use crate::index::columns::NO_TIME;
use crate::index::labels::Label;

/// Sets that a compilation works with, kept for the next one.
#[derive(Debug, Default)]
pub(crate) struct FilterBuffers {
    versions: Bitmap,
    other: Bitmap,
    rows: Bitmap,
}

/// The versions and rows that pass a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed<'a> {
    pub(crate) versions: &'a Bitmap,
    /// Rows of these versions: wholes and chunks.
    pub(crate) rows: &'a Bitmap,
}

/// The versions and rows of `index` that pass the request's filter.
pub(crate) fn compile<'a>(
    index: &'a Index,
    request: &RecallRequest,
    buffers: &'a mut FilterBuffers,
) -> Allowed<'a> {
    if !restricts(request) {
        return everything(index);
    }
    let FilterBuffers {
        versions,
        other,
        rows,
    } = buffers;
    versions.copy_from(if request.as_of.is_some() {
        &index.columns.live
    } else {
        &index.columns.current
    });
    keep_named(index, request, versions, other);
    keep_labelled(index, request, versions, other);
    keep_timed(index, request, versions);
    if index.is_flat() {
        return Allowed {
            versions,
            rows: versions,
        };
    }
    rows.reset(index.rows());
    for version in versions.iter() {
        for row in index.rows_of(version) {
            rows.insert(row);
        }
    }
    Allowed { versions, rows }
}

/// Everything current: the result for a request without a filter.
pub(crate) fn everything(index: &Index) -> Allowed<'_> {
    Allowed {
        versions: &index.columns.current,
        rows: &index.current_rows,
    }
}

/// Returns true if a request has any filter.
pub(crate) fn restricts(request: &RecallRequest) -> bool {
    !request.tags.is_empty()
        || !request.fact_types.is_empty()
        || !request.metadata.is_empty()
        || request.session.is_some()
        || request.occurred.is_some()
        || request.retained.is_some()
        || request.as_of.is_some()
        || request.valid_at.is_some()
        || request.memory_ids.is_some()
}

fn keep_named(index: &Index, request: &RecallRequest, versions: &mut Bitmap, other: &mut Bitmap) {
    if let Some(ids) = &request.memory_ids {
        other.reset(versions.bound());
        for id in ids {
            index
                .columns
                .versions_of(id)
                .for_each(|version| _ = other.insert(version));
        }
        versions.intersect(other);
    }
    if let Some(session) = &request.session {
        other.reset(versions.bound());
        for place in index.conversations.session(session).unwrap_or_default() {
            other.insert(place.version);
        }
        versions.intersect(other);
    }
}

fn keep_labelled(
    index: &Index,
    request: &RecallRequest,
    versions: &mut Bitmap,
    other: &mut Bitmap,
) {
    let tags = || request.tags.iter().map(|tag| Label::Tag(tag));
    match request.tag_match {
        _ if request.tags.is_empty() => {}
        TagMatch::Any => {
            unite(index, tags(), versions.bound(), other);
            versions.intersect(other);
        }
        TagMatch::None => {
            unite(index, tags(), versions.bound(), other);
            versions.subtract(other);
        }
        TagMatch::All => {
            for tag in tags() {
                unite(index, std::iter::once(tag), versions.bound(), other);
                versions.intersect(other);
            }
        }
    }
    if !request.fact_types.is_empty() {
        let types = request
            .fact_types
            .iter()
            .map(|fact_type| Label::FactType(fact_type));
        unite(index, types, versions.bound(), other);
        versions.intersect(other);
    }
    for (key, value) in &request.metadata {
        unite(
            index,
            std::iter::once(Label::Metadata(key, value)),
            versions.bound(),
            other,
        );
        versions.intersect(other);
    }
}

/// Makes `set` the versions that have at least one of the labels.
fn unite<'a>(index: &Index, labels: impl Iterator<Item = Label<'a>>, bound: u32, set: &mut Bitmap) {
    set.reset(bound);
    for postings in labels.filter_map(|label| index.labels.versions(label)) {
        postings.iter().for_each(|version| _ = set.insert(version));
    }
}

fn keep_timed(index: &Index, request: &RecallRequest, versions: &mut Bitmap) {
    let columns = &index.columns;
    if let Some(instant) = request.as_of {
        versions.retain(|version| {
            let at = version as usize;
            columns.known_from[at] <= instant && instant < columns.known_until[at]
        });
    }
    if let Some(instant) = request.valid_at {
        for (&version, &(from, until)) in &columns.validity {
            if !(from..=until).contains(&instant) {
                versions.remove(version);
            }
        }
    }
    if let Some(range) = request.retained {
        versions.retain(|version| within(columns.retained_at(version), range));
    }
    if let Some(range) = request.occurred {
        versions.retain(|version| {
            let occurred = columns.occurred_at[version as usize];
            within(
                if occurred == NO_TIME {
                    columns.retained_at(version)
                } else {
                    occurred
                },
                range,
            )
        });
    }
}

fn within(time: i64, (first, last): (Option<i64>, Option<i64>)) -> bool {
    first.is_none_or(|first| first <= time) && last.is_none_or(|last| time <= last)
}
