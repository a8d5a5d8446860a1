"""Every hypothesis strategy of the suite."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from astrocyte.model import (
    AccessCheck,
    AppliedOperation,
    ArchiveReason,
    ArmScore,
    ArmStanding,
    AuditEvent,
    AuditMethod,
    AuditPage,
    AuditResult,
    Bank,
    BankHealth,
    BankIndexStats,
    BankStats,
    BankTemplate,
    BlockKind,
    Boost,
    BorrowedScore,
    Change,
    ChangeKind,
    Check,
    CheckReport,
    Citation,
    CompileResult,
    ContentPart,
    ContentType,
    Counterfactual,
    Curation,
    CurationAction,
    DedupAction,
    DeltaOperation,
    DetailLevel,
    Diagnosis,
    Directive,
    Dispositions,
    Embedding,
    EngineInfo,
    EngineOutbox,
    Entity,
    ErasureReceipt,
    Evidence,
    ExplainResult,
    ExplainStage,
    Explanation,
    Finding,
    ForgetResult,
    ForgetSelector,
    FusionMethod,
    GapItem,
    Grant,
    HealthIssue,
    HealthMetrics,
    HealthStatus,
    HistoryResult,
    Hold,
    IndexMemory,
    Intent,
    ItemExplanation,
    KeyInfo,
    KnowledgeRevision,
    Memory,
    MemoryHit,
    MemoryPath,
    MemoryState,
    MemoryUpdate,
    MentalModel,
    MentalModelUpdate,
    ModelBlock,
    ModelSection,
    MultiBankMode,
    MultiBankStrategy,
    Observation,
    ObservationKind,
    OutboxState,
    PageFinding,
    PageFindings,
    PageHit,
    PageKind,
    PageLink,
    PageProblem,
    PageWriter,
    PartKind,
    Permission,
    PrefixExpansion,
    QualityDataPoint,
    RecallQuery,
    RecallResult,
    RecallTrace,
    ReflectMode,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
    RetentionAction,
    RevisionCause,
    RevisionDiff,
    ServerInfo,
    Severity,
    SkippedOperation,
    SourceInfo,
    SourceState,
    TagMatch,
    TemplateGrant,
    TimeRange,
    TopicCoverage,
    Trend,
    UnansweredQuery,
    WikiPage,
)

EAST = timezone(timedelta(hours=5, minutes=45))
# All of it is short, since an answer has dozens of texts and every one is drawn letter by letter.
# Text that UTF-8 can carry; on the wire an empty string is an absent one, so optional texts are not empty.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
optional_names = st.none() | names
# A day from both ends of the calendar, so that a change of zone stays within it; the strategy adds the zone.
FIRST, LAST = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001
instants = st.datetimes(FIRST, LAST, timezones=st.sampled_from([UTC, EAST]))
optional_instants = st.none() | instants
# An offset other than UTC is sent as the zone of the request: tests/unit/services/test_time_zones.py.
references = optional_instants.map(lambda value: None if value is None else value.astimezone(UTC))
counts = st.integers(0, 2**31 - 1)
positions = st.integers(0, 2**63 - 1)
numbers = st.floats(allow_nan=False)
tags = st.lists(names, max_size=2).map(tuple)
metadata = st.dictionaries(
    names, st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | numbers | texts, max_size=2
)
weights = st.dictionaries(names, numbers, max_size=2)
embeddings = st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(
    lambda values: Embedding("model", len(values), struct.pack(f"<{len(values)}f", *values))
)
ranges = st.builds(TimeRange, optional_instants, optional_instants)

media = {"data": st.binary(max_size=8), "url": texts, "media_type": texts}
parts = st.lists(
    st.builds(ContentPart, st.just(PartKind.TEXT), texts)
    | st.builds(ContentPart, st.sampled_from([PartKind.IMAGE, PartKind.AUDIO]), **media),
    max_size=3,
).map(tuple)

items = st.builds(
    RetainItem,
    content=texts,
    content_type=st.sampled_from([*ContentType, "markdown"]),
    metadata=metadata,
    tags=tags,
    occurred_at=optional_instants,
    valid_from=optional_instants,
    valid_until=optional_instants,
    source=optional_names,
    session_id=optional_names,
    speaker=optional_names,
    fact_type=optional_names,
    extraction_profile=optional_names,
    pii_detected=st.booleans(),
    embedding=st.none() | embeddings,
    dedup_action=st.none() | st.sampled_from(DedupAction),
    dedup_threshold=st.none() | numbers,
    parts=parts,
)
retain_results = st.builds(
    RetainResult,
    stored=st.booleans(),
    memory_id=optional_names,
    deduplicated=st.booleans(),
    error=optional_names,
    retention_action=st.none() | st.sampled_from(RetentionAction),
    curated=st.booleans(),
    memory_layer=optional_names,
    position=positions,
    chunk_count=counts,
    token_count=counts,
    was_update=st.booleans(),
    near_duplicate_of=optional_names,
    similarity=st.none() | numbers,
    warnings=tags,
    curation=st.none()
    | st.builds(Curation, st.sampled_from(CurationAction), st.booleans(), optional_names, texts, texts),
)
memories = st.builds(
    Memory,
    memory_id=names,
    bank_id=names,
    version=counts,
    content=texts,
    content_type=st.sampled_from([*ContentType, "markdown"]),
    fact_type=names,
    memory_layer=names,
    tags=tags,
    metadata=metadata,
    source=optional_names,
    session_id=optional_names,
    speaker=optional_names,
    principal=names,
    occurred_at=optional_instants,
    valid_from=optional_instants,
    valid_until=optional_instants,
    retained_at=instants,
    updated_at=instants,
    forgotten_at=optional_instants,
    purge_after=optional_instants,
    chunk_count=counts,
    token_count=counts,
    position=positions,
    etag=names,
    state=st.sampled_from(MemoryState),
    entities=st.lists(st.builds(Entity, names, names), max_size=3).map(tuple),
    archived_at=optional_instants,
    archive_reason=st.none() | st.sampled_from(ArchiveReason),
    merged_into=optional_names,
)
updates = st.builds(
    MemoryUpdate,
    memory_id=names,
    fields=st.frozensets(st.sampled_from(["content", "tags", "metadata", "source", "occurred_at"]), min_size=1),
    content=texts,
    tags=tags,
    metadata=metadata,
    source=optional_names,
    occurred_at=optional_instants,
    valid_from=optional_instants,
    valid_until=optional_instants,
    embedding=st.none() | embeddings,
    etag=optional_names,
)
arms = st.lists(st.builds(ArmScore, names, counts, numbers), max_size=2).map(tuple)


hits = st.builds(
    MemoryHit,
    text=texts,
    score=numbers,
    memory_id=names,
    bank_id=names,
    metadata=metadata,
    tags=tags,
    occurred_at=optional_instants,
    retained_at=instants,
    source=optional_names,
    memory_layer=names,
    fact_type=names,
    session_id=optional_names,
    speaker=optional_names,
    principal=optional_names,
    chunk_index=st.integers(-1, 2**31 - 1),
    chunk_count=st.integers(1, 2**31 - 1),
    token_count=counts,
    version=st.integers(1, 2**31 - 1),
    arms=arms,
    boosts=st.sampled_from(((), (Boost("own", 1.5), Boost("curated", -0.25)))),
    utility_score=st.sampled_from((None, 0.0, 0.25)),
    fused_score=st.none() | numbers,
)
queries = st.builds(
    RecallQuery,
    query=texts,
    bank_id=texts,
    max_results=st.integers(1, 2**31 - 1),
    max_tokens=st.none() | st.integers(1, 2**31 - 1),
    tags=tags,
    tag_match=st.sampled_from(TagMatch),
    fact_types=tags,
    memory_ids=tags,
    metadata=metadata,
    session_id=optional_names,
    time_range=st.none() | ranges,
    retained_range=st.none() | ranges,
    as_of=optional_instants,
    valid_at=optional_instants,
    include_archived=st.booleans(),
    require_phrases=st.booleans(),
    expand_prefixes=st.booleans(),
    query_reference_date=references,
    time_zone=st.none() | st.sampled_from(("UTC", "+05:30", "Europe/Berlin")),
    include_sources=st.booleans(),
    include_trace=st.booleans(),
    layer_weights=weights,
    weights=weights,
    fusion_method=st.none() | st.sampled_from(FusionMethod),
    rank_constant=st.none() | numbers,
    dedup_threshold=st.none() | numbers,
    detail_level=st.sampled_from(DetailLevel),
    embedding=st.none() | embeddings,
    min_position=positions,
    external_context=st.lists(hits, max_size=2).map(tuple),
)
numbers_by_name = st.dictionaries(names, numbers, max_size=2)
counts_by_name = st.dictionaries(names, counts, max_size=2)
paths = st.builds(MemoryPath, names, tags, tags, names)
traces = st.builds(
    RecallTrace,
    strategies_used=tags,
    total_candidates=counts,
    fusion_method=names,
    latency_ms=numbers,
    strategy_timings_ms=numbers_by_name,
    strategy_candidate_counts=counts_by_name,
    tier_used=counts,
    layer_distribution=counts_by_name,
    cache_hit=st.booleans(),
    wiki_tier_used=st.booleans(),
    stage_timings_ms=numbers_by_name,
    plan=texts,
    degraded=texts,
    time_windows=st.lists(ranges, max_size=2).map(tuple),
    intent=st.sampled_from(Intent),
    intent_confidence=st.floats(0, 1),
    position=positions,
    tier_reason=st.sampled_from(("", "recent: 1 good of 3 wanted")),
    date_warnings=st.sampled_from(((), ("30 February is no date of the calendar",))),
    via=st.lists(paths, max_size=2).map(tuple),
    prefixes=st.sampled_from(
        ((), (PrefixExpansion("kil", "bank", ("kiln", "kilo"), 3), PrefixExpansion("quag", "bank")))
    ),
)


directives = st.builds(
    Directive,
    directive_id=names,
    bank_id=names,
    rule_text=texts,
    scope=names,
    priority=st.integers(-1_000, 1_000),
    created_by=names,
    created_at=instants,
    etag=names,
)
evidence = st.builds(
    Evidence,
    memory_id=names,
    version=counts,
    observed_at=instants,
    is_changed=st.booleans(),
    is_archived=st.booleans(),
)
sources = st.lists(evidence, max_size=2).map(tuple)
observations = st.builds(
    Observation,
    observation_id=names,
    bank_id=names,
    scope=names,
    text=texts,
    kind=st.sampled_from(ObservationKind),
    confidence=numbers,
    proof_count=counts,
    trend=st.sampled_from(Trend),
    evidence=sources,
    revision=counts,
    etag=names,
    created_by=names,
    created_at=instants,
    updated_at=instants,
    valid_from=optional_instants,
    valid_until=optional_instants,
    superseded_by=texts,
    is_stale=st.booleans(),
)
blocks = st.builds(ModelBlock, kind=st.sampled_from(BlockKind), text=texts, items=tags, language=texts, source_ids=tags)
model_sections = st.builds(
    ModelSection,
    section_id=texts,
    heading=texts,
    blocks=st.lists(blocks, max_size=2).map(tuple),
    level=st.integers(0, 6),
)
mental_models = st.builds(
    MentalModel,
    model_id=names,
    bank_id=names,
    name=texts,
    scope=names,
    sections=st.lists(model_sections, max_size=2).map(tuple),
    content=texts,
    sources=sources,
    revision=counts,
    etag=names,
    created_by=names,
    created_at=instants,
    updated_at=instants,
    is_stale=st.booleans(),
)
delta_operations = st.builds(
    DeltaOperation,
    op=names,
    section_id=texts,
    block_index=st.none() | counts,
    block=st.none() | blocks,
    blocks=st.lists(blocks, max_size=2).map(tuple),
    heading=texts,
    level=st.none() | counts,
    after_section_id=texts,
    new_section_id=texts,
    unknown_fields=tags,
)
model_updates = st.builds(
    MentalModelUpdate,
    model=mental_models,
    applied_ops=st.lists(st.builds(AppliedOperation, counts, names), max_size=2).map(tuple),
    skipped_ops=st.lists(st.builds(SkippedOperation, counts, names, texts), max_size=2).map(tuple),
)
knowledge_revisions = st.builds(
    KnowledgeRevision,
    revision=counts,
    cause=st.sampled_from(RevisionCause),
    text=texts,
    source_ids=tags,
    changed_by=names,
    changed_at=instants,
)
revision_diffs = st.builds(
    RevisionDiff,
    from_revision=counts,
    to_revision=counts,
    sections_added=tags,
    sections_removed=tags,
    sections_changed=tags,
    unified_diff=texts,
)
recall_results = st.builds(
    RecallResult,
    hits=st.lists(hits, max_size=2).map(tuple),
    total_available=counts,
    truncated=st.booleans(),
    trace=st.none() | traces,
    authority_context=optional_names,
    warnings=tags,
    confidence=st.sampled_from((None, 0.0, 0.5)),
    abstain=st.booleans(),
    directives=st.lists(directives, max_size=2).map(tuple),
)
bank_strategies = st.builds(
    MultiBankStrategy,
    mode=st.none() | st.sampled_from(MultiBankMode),
    min_results_to_stop=st.none() | counts,
    min_score_to_stop=st.none() | numbers,
    cascade_order=st.none() | st.lists(names, min_size=1, max_size=3).map(tuple),
    bank_weights=st.none() | st.dictionaries(names, numbers, min_size=1, max_size=3),
    dedup_across_banks=st.none() | st.booleans(),
    fusion_method=st.none() | st.sampled_from(FusionMethod),
    require_all=st.none() | st.booleans(),
)
reflect_queries = st.builds(
    ReflectQuery,
    query=texts,
    bank_id=texts,
    max_tokens=st.none() | st.integers(1, 2**31 - 1),
    tags=tags,
    tag_match=st.sampled_from(TagMatch),
    fact_types=tags,
    session_id=optional_names,
    time_range=st.none() | ranges,
    as_of=optional_instants,
    valid_at=optional_instants,
    query_reference_date=references,
    time_zone=st.none() | st.sampled_from(("UTC", "+05:30", "Europe/Berlin")),
    include_sources=st.booleans(),
    dispositions=st.none() | st.builds(Dispositions, *[st.integers(1, 5)] * 3),
    mode=st.none() | st.sampled_from(ReflectMode),
    embedding=st.none() | embeddings,
    min_position=positions,
    banks=tags,
    bank_group=optional_names,
    strategy=st.none() | bank_strategies,
)
reflect_results = st.builds(
    ReflectResult,
    answer=texts,
    confidence=st.none() | numbers,
    sources=st.lists(hits, max_size=2).map(tuple),
    observations=tags,
    authority_context=optional_names,
    citations=st.lists(st.builds(Citation, counts, counts, names), max_size=3).map(tuple),
    abstained=st.booleans(),
    mode=st.none() | st.sampled_from(ReflectMode),
    fallback_used=st.booleans(),
    truncated=st.booleans(),
    tokens_used=counts,
    trace=st.none() | traces,
    directives=st.lists(directives, max_size=2).map(tuple),
)
history_results = st.builds(
    HistoryResult,
    hits=st.lists(hits, max_size=2).map(tuple),
    total_available=counts,
    truncated=st.booleans(),
    as_of=instants,
    bank_id=names,
    trace=st.none() | traces,
    warnings=tags,
)
selectors = st.builds(
    ForgetSelector, memory_ids=tags, tags=tags, scope=st.sampled_from([None, "all"]), before_date=optional_instants
)
receipts = st.builds(
    ErasureReceipt,
    counts=st.dictionaries(names, positions, max_size=3),
    salt=names,
    salted_ids=tags,
    root_hash_before=names,
    root_hash_after=names,
    completed_at=instants,
)
forget_results = st.builds(
    ForgetResult,
    deleted_count=positions,
    archived_count=positions,
    memory_ids=tags,
    dry_run=st.booleans(),
    position=positions,
    receipt=st.none() | receipts,
)
changes = st.builds(Change, position=positions, kind=st.sampled_from(ChangeKind), memory_id=names, changed_at=instants)
banks = st.builds(
    Bank,
    key=positions,
    tenant=names,
    bank_id=names,
    display_name=texts,
    description=texts,
    embedding_model=names,
    dimensions=counts,
    created_at=instants,
    updated_at=instants,
    position=positions,
    etag=names,
    created_by=names,
    template=names,
    profile=names,
)
permission_sets = st.frozensets(st.sampled_from(Permission))
grants = st.builds(
    Grant, bank_id=names, principal=names, permissions=permission_sets, granted_by=names, granted_at=instants
) | st.builds(
    Grant,
    bank_id=names,
    principal=names,
    permissions=permission_sets,
    granted_at=st.none() | instants,
    revoked_by=names,
    revoked_at=instants,
)
key_infos = st.builds(
    KeyInfo,
    key_id=names,
    tenant=names,
    name=names,
    principal=names,
    created_by=names,
    created_at=instants,
    expires_at=st.none() | instants,
    last_used_at=st.none() | instants,
) | st.builds(
    KeyInfo,
    key_id=names,
    tenant=names,
    name=names,
    principal=names,
    created_by=names,
    created_at=instants,
    revoked_by=names,
    revoked_at=instants,
)
holds = st.builds(
    Hold,
    hold_id=names,
    bank_id=names,
    memory_ids=st.lists(names).map(tuple),
    tags=st.lists(names).map(tuple),
    reason=names,
    placed_by=names,
    placed_at=instants,
) | st.builds(
    Hold,
    hold_id=names,
    bank_id=names,
    memory_ids=st.just(()),
    tags=st.just(()),
    reason=names,
    placed_by=names,
    placed_at=instants,
    released_by=names,
    released_at=instants,
    expires_at=optional_instants,
)
audit_events = st.builds(
    AuditEvent,
    tenant=names,
    sequence=st.integers(1, 2**60),
    event=names,
    occurred_at=instants,
    actor=names,
    bank_key=st.integers(0, 2**60),
    details=st.dictionaries(names, names),
    hash=st.binary(max_size=32),
)
page_links = st.builds(PageLink, page_id=names, title=texts, shared_count=counts)
wiki_pages = st.builds(
    WikiPage,
    page_id=names,
    bank_id=names,
    kind=st.sampled_from(PageKind),
    title=texts,
    scope=names,
    writer=st.sampled_from(PageWriter),
    sections=st.lists(model_sections, max_size=2).map(tuple),
    content=texts,
    sources=sources,
    links=st.lists(page_links, max_size=2).map(tuple),
    revision=counts,
    etag=names,
    created_at=instants,
    updated_at=instants,
    is_stale=st.booleans(),
)
page_hits = st.builds(
    PageHit, page_id=names, title=texts, heading=texts, text=texts, relevance=numbers, source_ids=tags
)
page_findings = st.builds(
    PageFindings,
    findings=st.lists(st.builds(PageFinding, names, st.sampled_from(PageProblem), texts), max_size=2).map(tuple),
    pages_examined=counts,
    next_page_token=names,
)
audit_results = st.builds(
    AuditResult,
    scope=texts,
    bank_id=names,
    coverage_score=numbers,
    gaps=st.lists(st.builds(GapItem, texts, st.sampled_from(Severity), texts), max_size=2).map(tuple),
    topics=st.lists(st.builds(TopicCoverage, texts, st.booleans(), numbers, tags, optional_instants), max_size=2).map(
        tuple
    ),
    memories_scanned=counts,
    method=st.sampled_from(AuditMethod),
    error=texts,
    unanswered=st.lists(st.builds(UnansweredQuery, texts, counts, instants, st.booleans()), max_size=2).map(tuple),
)
diagnoses = st.builds(
    Diagnosis,
    bank_id=names,
    findings=st.lists(
        st.builds(Finding, st.sampled_from(Check), st.sampled_from(Severity), texts, tags, texts, st.booleans()),
        max_size=2,
    ).map(tuple),
    checks=st.lists(st.builds(CheckReport, st.sampled_from(Check), counts, counts, counts), max_size=2).map(tuple),
)
compile_results = st.builds(
    CompileResult,
    bank_id=names,
    scopes_compiled=counts,
    pages_created=counts,
    pages_updated=counts,
    pages_unchanged=counts,
    pages_deleted=counts,
    pages_held=counts,
    noise_memories=counts,
    tokens_used=counts,
    elapsed_ms=numbers,
    error=texts,
)
audit_pages = st.builds(
    AuditPage,
    events=st.lists(audit_events, max_size=3).map(tuple),
    head_sequence=st.integers(0, 2**60),
    head_hash=st.binary(max_size=32),
    next_page_token=names,
)
template_grants = st.builds(TemplateGrant, principal=names, permissions=permission_sets)
bank_templates = st.builds(
    BankTemplate,
    name=names,
    name_pattern=names,
    profile=names,
    auto_create=st.booleans(),
    access=st.lists(template_grants, max_size=3).map(tuple),
)
access_checks = st.builds(AccessCheck, allowed=st.booleans(), permissions=permission_sets)
bank_index_stats = st.builds(
    BankIndexStats,
    rows=positions,
    dead_rows=positions,
    terms=positions,
    sessions=positions,
    vector_bytes=positions,
    keyword_bytes=positions,
    column_bytes=positions,
    scratch_bytes=positions,
    segments=positions,
    graph_rows=positions,
    graph_bytes=positions,
    sampled_walks=positions,
    sampled_recall=st.none() | st.floats(0, 1),
    widened=positions,
)
index_memories = st.builds(
    IndexMemory, loaded_banks=positions, bytes=positions, budget_bytes=positions, loads=positions, evictions=positions
)
rates = st.none() | st.floats(0, 1)
bank_healths = st.builds(
    BankHealth,
    score=st.floats(0, 1),
    status=st.sampled_from(HealthStatus),
    issues=st.lists(
        st.builds(HealthIssue, severity=st.sampled_from(HealthStatus), code=names, message=texts, recommendation=texts),
        max_size=2,
    ).map(tuple),
    metrics=st.builds(
        HealthMetrics,
        retain_count=positions,
        recall_count=positions,
        reflect_count=positions,
        recall_hit_rate=rates,
        avg_recall_score=rates,
        dedup_rate=rates,
        reflect_success_rate=rates,
        avg_content_length=rates,
        recalls_per_retain=rates,
    ),
    trend=st.lists(
        st.builds(
            QualityDataPoint,
            date=names,
            retain_count=positions,
            recall_count=positions,
            recall_hit_rate=rates,
            avg_recall_score=rates,
            dedup_rate=rates,
            reflect_success_rate=rates,
        ),
        max_size=2,
    ).map(tuple),
    assessed_at=instants,
)
bank_stats = st.builds(
    BankStats,
    bank_id=names,
    memory_count=positions,
    chunk_count=positions,
    forgotten_count=positions,
    token_count=positions,
    position=positions,
    indexed_position=st.integers(-1, 2**63 - 1),
    index_bytes=positions,
    index=st.none() | bank_index_stats,
    waiting_copies=positions,
    health=st.none() | bank_healths,
    archived_count=positions,
)
server_infos = st.builds(
    ServerInfo,
    version=names,
    core_version=names,
    core_profile=names,
    simd=names,
    sqlite_version=names,
    schema_version=counts,
    embedding_model=names,
    dimensions=counts,
    token_table=names,
    store=names,
    started_at=instants,
    index_memory=index_memories,
)


def same(left: Any, right: Any) -> bool:
    """Equality that tells True from 1 and 1 from 1.0, as the wire does."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float) and isinstance(right, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return type(left) is type(right) and left == right


explanations = st.builds(
    Explanation,
    memory_id=names,
    stage=st.sampled_from(ExplainStage),
    detail=texts,
    rank=counts,
    score=st.none() | numbers,
    fused_rank=counts,
    fused_score=st.none() | numbers,
    arms=st.lists(
        st.builds(ArmStanding, names, counts, st.none() | numbers, st.booleans(), st.none() | numbers), max_size=3
    ).map(tuple),
    conditions=tags,
    repeats=optional_names,
    similarity=st.none() | numbers,
    token_count=counts,
    tokens_left=st.none() | counts,
    redacted=st.booleans(),
    counterfactual=st.none() | st.builds(Counterfactual, queries, tags, texts),
    borrowed=st.lists(st.builds(BorrowedScore, names, names, numbers, st.booleans()), max_size=3).map(tuple),
    via=st.none() | paths,
)
explain_results = st.builds(
    ExplainResult,
    st.lists(explanations, max_size=3).map(tuple),
    positions,
    st.booleans(),
    counts,
    counts,
    tags,
    st.lists(
        st.builds(
            ItemExplanation,
            names,
            names,
            names,
            st.sampled_from(ExplainStage),
            texts,
            numbers,
            numbers,
            counts,
            numbers,
            numbers,
            counts,
        ),
        max_size=3,
    ).map(tuple),
)
source_infos = st.builds(
    SourceInfo,
    source_id=names,
    type=names,
    driver=names,
    target=names,
    state=st.sampled_from(SourceState),
    healthy=st.booleans(),
    detail=texts,
    stored=counts,
    duplicates=counts,
    refused=counts,
    failed=counts,
    lag=st.none() | counts,
    last_stored_at=st.none() | instants,
)
engine_infos = st.builds(
    EngineInfo,
    name=names,
    provider=names,
    banks=tags,
    retain_target=names,
    read_only=st.booleans(),
    healthy=st.booleans(),
    circuit=names,
    capabilities=tags,
    detail=texts,
    outbox=st.none()
    | st.builds(
        EngineOutbox,
        state=st.sampled_from(OutboxState),
        waiting=positions,
        refused=positions,
        limit=positions,
        since=optional_instants,
    ),
)
