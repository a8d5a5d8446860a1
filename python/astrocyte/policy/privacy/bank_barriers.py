"""The barriers of one bank: its settings, its policies about personal data, and the verdicts of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from astrocyte.config import Settings
from astrocyte.config.banks import BankSettings
from astrocyte.config.barriers import RESERVED
from astrocyte.errors import ConfigError, PiiRejected
from astrocyte.policy.events import emit
from astrocyte.policy.privacy.pii_detectors import Span, create_detector
from astrocyte.policy.privacy.pii_policy import Action, PiiPolicy, Verdict, listed
from astrocyte.policy.privacy.text_fields import Parts
from astrocyte.providers.protocols import LanguageModel

# The fields of `BankBarriers` that look at what was found.
LOOKERS = ("pii", "queries", "outgoing", "evidence", "leaving")

EVENTS: Mapping[Action, str] = {"redact": "pii_redacted", "reject": "pii_rejected", "warn": "pii_detected"}


@dataclass(frozen=True, slots=True)
class BankBarriers:
    """A bank's settings, and its policy about personal data; None where that is switched off."""

    settings: BankSettings
    pii: PiiPolicy | None
    # For queries: ``pii`` where it looks at them.
    queries: PiiPolicy | None
    # For hits, and for what answers are made of; None where they are not looked at.
    outgoing: PiiPolicy | None
    evidence: PiiPolicy | None
    # For what models are shown that are no part of this process: either of them.
    leaving: PiiPolicy | None


def bank_barriers(
    settings: Settings, own: BankSettings, above: tuple[str, ...], model: LanguageModel | None
) -> BankBarriers:
    """The barriers that the settings of a bank ask for; ``above`` is the path of its blocks, for errors."""

    def refusal(path: tuple[str, ...], problem: str) -> ConfigError:
        return settings.refusal((*above, "barriers", "pii", *path), problem)

    pii = own.barriers.pii
    outgoing = {
        "action": own.dlp.output_pii_action,
        # An answer waits for no model.
        "mode": "regex",
        # How a type is replaced holds for answers too, and whether it matters at all.
        "type_overrides": {
            name: one if one.action == "ignore" else one.model_copy(update={"action": None})
            for name, one in pii.type_overrides.items()
        },
    }
    leaving = own.dlp.scan_recall_output or own.dlp.scan_reflect_output
    policy = PiiPolicy(pii.model_copy(update=outgoing), refusal) if leaving else None
    incoming = None if pii.mode == "disabled" else PiiPolicy(pii, refusal, create_detector(pii, model, refusal))
    return BankBarriers(
        own,
        incoming,
        incoming if "query" in pii.scan else None,
        policy if own.dlp.scan_recall_output else None,
        policy if own.dlp.scan_reflect_output else None,
        policy,
    )


class QueryFindings(NamedTuple):
    """The findings of a bank's policy in a query."""

    bank_id: str
    verdict: Verdict
    redactions: list[tuple[Span, str]]


async def find_in_query(bank_id: str, policy: PiiPolicy, text: str) -> QueryFindings | None:
    """The findings of the policy in a query; None where there are none."""
    spans = await policy.examine((text,)) if policy.asks else policy.find((text,))
    return QueryFindings(bank_id, policy.judge((text,), spans), policy.redactions(spans)) if spans else None


async def examined(policy: PiiPolicy, parts: Parts) -> Verdict:
    """The verdict on the parts of an item or update; it may ask a model."""
    spans = await policy.examine(parts.texts)
    return policy.judge(parts.texts, parts.own(spans)) if spans else Verdict(tuple(parts.texts))


def with_declared(policy: PiiPolicy, parts: Parts, verdict: Verdict) -> Verdict:
    """The verdict on content that holds personal data by its caller's word: the action for all applies to it.

    Where it is to be redacted and nothing in it was found, nobody knows which part: the whole is replaced.
    """
    action = policy.settings.action
    if action == "redact" and "content" in parts.changed(verdict):
        return verdict
    counts = {**verdict.counts, action: {**verdict.counts.get(action, {}), RESERVED: 1}}
    if action != "redact":
        return replace(verdict, counts=counts)
    whole = [policy.placeholder(RESERVED), *verdict.texts[1:]]
    return Verdict(tuple(whole), verdict.changed | {0}, counts)


def emit_verdict(bank_id: str, operation: str, verdict: Verdict) -> None:
    """Tell the operator of a verdict: an event for each action and type."""
    for action, counts in verdict.counts.items():
        for name, count in counts.items():
            emit(EVENTS[action], bank_id=bank_id, operation=operation, pattern=name, count=count, action=action)


def refuse(verdict: Verdict, path: str) -> None:
    """Raise where something is refused."""
    refused = verdict.counts.get("reject")
    if refused:
        raise PiiRejected(
            f"{path}: contains {listed(refused)}, which this bank refuses; remove it from the text",
            metadata={"field": path, "types": ",".join(sorted(refused))},
        )
