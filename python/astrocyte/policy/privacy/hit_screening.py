"""Hits that are to leave, judged: what personal data in one has its banks do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from astrocyte.core import count_tokens
from astrocyte.model import MemoryHit
from astrocyte.policy.privacy.pii_policy import Action, PiiPolicy, Verdict
from astrocyte.policy.privacy.text_fields import Parts, hit_parts

# Numbers of findings by action and type.
Counts = Mapping[Action, Mapping[str, int]]


def is_refused(policy: PiiPolicy | None, hit: MemoryHit) -> bool:
    """True if a hit may not leave by this policy, where there is one."""
    return policy is not None and "reject" in _judge(policy, hit_parts(hit)).counts


def _judge(policy: PiiPolicy, parts: Parts) -> Verdict:
    spans = policy.find(parts.texts)
    return policy.judge(parts.texts, parts.own(spans)) if spans else Verdict(tuple(parts.texts))


def judged(hit: MemoryHit, judges: Mapping[str, PiiPolicy]) -> tuple[MemoryHit | None, list[tuple[str, Counts]]]:
    """The hit as it may leave, None if it may not, and what was found, by the bank that says so."""
    parts = hit_parts(hit)
    verdicts = {bank_id: _judge(policy, parts) for bank_id, policy in judges.items()}
    refusing = [(bank_id, verdict.counts) for bank_id, verdict in verdicts.items() if verdict.counts.get("reject")]
    if refusing:
        return None, refusing
    changed = hit
    for bank_id, verdict in verdicts.items():
        if changed is hit:
            changed = parts.put(hit, verdict) if verdict.changed else hit
        else:
            # An earlier bank's placeholders stand in it.
            left = hit_parts(changed)
            changed = left.put(changed, _judge(judges[bank_id], left))
    if changed.text != hit.text:
        changed = replace(changed, token_count=count_tokens(changed.text))
    return changed, [(bank_id, verdict.counts) for bank_id, verdict in verdicts.items() if verdict.counts]
