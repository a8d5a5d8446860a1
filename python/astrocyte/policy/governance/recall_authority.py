"""Recall authority: the hits as a block of text, sorted by the authority of their source, by the operator's rules.

The block orders words for a reader, a person or a language model; it never changes the ranking. A memory's tier is
that of its bank, where the settings give the bank one, whatever its metadata says; else what metadata calls
`authority_tier`, which the extraction profile or whoever wrote the memory put there. Texts are those that the barriers
let through, each on a line of its own, so that no memory can make itself a heading.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from astrocyte.config import Settings
from astrocyte.model import MemoryHit, RecallResult, RetainItem
from astrocyte.policy.glob_patterns import is_pattern, matches

KEY = "authority_tier"
UNASSIGNED = "[UNASSIGNED]"
NO_HITS = "(no hits)"
# Between the rules and the hits.
RULE = "---"


class Authority:
    """Tells tiers.

    Args:
        settings: Rules and tiers.

    Raises:
        ConfigError: The file of rules cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        own = settings.recall_authority
        self.enabled = own.enabled
        self._in_reflect = own.enabled and own.apply_to_reflect
        self._tiers = sorted(own.tiers, key=lambda tier: (tier.priority, tier.id))
        self._exact = {bank: tier for bank, tier in own.tier_by_bank.items() if not is_pattern(bank)}
        self._patterns = [(bank, tier) for bank, tier in own.tier_by_bank.items() if is_pattern(bank)]
        self._rules = own.rules_inline.strip()
        if own.enabled and own.rules_path is not None:
            self._rules = _read(settings, own.rules_path)

    def stamped(self, bank_id: str, item: RetainItem) -> RetainItem:
        """An item on its way into a bank, with the bank's tier in its metadata, if the bank has one."""
        tier = self._of_bank(bank_id) if self.enabled else None
        return item if tier is None else replace(item, metadata={**item.metadata, KEY: tier})

    def told(self, result: RecallResult) -> RecallResult:
        """The result with the authority block."""
        return self._with_block(result) if self.enabled else result

    def evidence(self, result: RecallResult) -> RecallResult:
        """The evidence of a reflect, with the block where the settings want it there."""
        return self._with_block(result) if self._in_reflect else result

    def _with_block(self, result: RecallResult) -> RecallResult:
        lines = [self._rules] if self._rules else []
        if self._tiers:
            lines += [RULE] * bool(lines)
            by_tier: dict[str, list[str]] = {tier.id: [] for tier in self._tiers}
            rest: list[str] = []
            for hit in result.hits:
                by_tier.get(self._tier_of(hit), rest).append(f"- {' '.join(hit.text.split())}")
            for tier in self._tiers:
                lines += [tier.label or f"[{tier.id}]", *(by_tier[tier.id] or [f"- {NO_HITS}"])]
            if rest:
                lines += [UNASSIGNED, *rest]
        return replace(result, authority_context="\n".join(lines) or None)

    def _tier_of(self, hit: MemoryHit) -> str:
        if hit.engine:
            # Text from outside, to which nobody here gave any authority.
            return ""
        of_bank = self._of_bank(hit.bank_id or "")
        tier = (hit.metadata or {}).get(KEY) if of_bank is None else of_bank
        return tier if isinstance(tier, str) else ""

    def _of_bank(self, bank_id: str) -> str | None:
        """The bank's tier: by its id, else by the first pattern that fits."""
        if bank_id in self._exact:
            return self._exact[bank_id]
        return next((tier for pattern, tier in self._patterns if matches(pattern, bank_id)), None)


def _read(settings: Settings, path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise settings.refusal(
            ("recall_authority", "rules_path"), f"cannot be read as UTF-8: {type(error).__name__}"
        ) from error
