"""Completes items on their way in: parts become text, mails are decoded, profile and bank add metadata and tags."""

from __future__ import annotations

from dataclasses import replace

from astrocyte.config.loading.per_bank import PerBank
from astrocyte.model import RetainItem
from astrocyte.pipelines.extraction.profiles import PLAIN
from astrocyte.pipelines.text import mail
from astrocyte.policy.operations.parts import OperationParts


class Intake:
    """Completes items.

    Args:
        parts: What the operations share.

    Attributes:
        adds: Whether anything is added to items of a bank that have no parts, name no profile and are no mails.
    """

    def __init__(self, parts: OperationParts) -> None:
        self._describer = parts.pipelines.describer
        self._check = parts.check
        self._overrides = parts.policies.overrides
        self._authority = authority = parts.policies.authority
        self._profiles = profiles = parts.policies.profiles
        self.adds = PerBank(lambda bank_id: authority.enabled or profiles.default[bank_id] is not PLAIN)

    async def completed(
        self, bank_id: str, item: RetainItem, at: str, *, quiet: bool
    ) -> tuple[RetainItem, tuple[str, ...]]:
        """An item as text, with what its profile and its bank add, and what its caller is to be told.

        Args:
            bank_id: Where it goes.
            item: Checked as it came.
            at: Its path in the request.
            quiet: Ask no provider: the call changes nothing.

        Raises:
            ValidationError: What the item becomes is beyond a limit.
            CapabilityNotSupported: No provider can take in one of its parts.
            ProviderUnavailable, DeadlineExceeded: A provider that was to look at it could not.
        """
        text = self._decoded(bank_id, await self._describer.described(item, at, dry=quiet))
        completed, told = self._profiles.applied(bank_id, self._authority.stamped(bank_id, text))
        if completed is not item:
            most_bytes = self._overrides.of[bank_id].homeostasis.retain_max_content_bytes
            self._check.item(completed, most_bytes, at)
        return completed, told

    def _decoded(self, bank_id: str, item: RetainItem) -> RetainItem:
        """The item, a mail decoded: a transfer encoding would hide from the barriers what is stored."""
        if (self._profiles.of(bank_id, item).content_type or item.content_type) != mail.CONTENT_TYPE:
            return item
        content = mail.decoded(item.content)
        return item if content == item.content else replace(item, content=content)
