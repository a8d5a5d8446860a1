"""API keys: created here, shown once, and verified by a digest.

A key is ``astro_``, its id, which may be shown, and 256 random bits. The id finds the row; of the whole only a SHA-256
is kept, which needs no salt and no slow hash, since nobody can try 2^256 of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from astrocyte.api.requests import CreateApiKey, ListApiKeys, RevokeApiKey
from astrocyte.errors import AuthorizationError, FailedPrecondition, ValidationError
from astrocyte.model import Caller, KeyInfo, NewApiKey
from astrocyte.policy.auth.access_control import NO_BANK, Access
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.policy.requests.validation import Validator
from astrocyte.stores.access import KeyStore, NewKey

PREFIX = "astro_"
ID_BYTES = 8
SECRET_BYTES = 32
# How often uses are written down; what a list says of a key's last use is this much behind, at the most.
NOTE_MILLISECONDS = 60_000


class Keys:
    """Handlers of the RPCs on API keys, and the lookup of a key.

    Args:
        store: Where they are.
        access: Who may make them.
        check: The limits of requests.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, store: KeyStore, access: Access, check: Validator, clock: Callable[[], int]) -> None:
        self._store = store
        self._access = access
        self._check = check
        self._clock = clock
        self._uses: dict[str, int] = {}
        self._noted_at = 0
        self._noting: asyncio.Task[None] | None = None

    def caller(self, secret: str) -> Caller | None:
        """The caller of a key; None if the text does not have the form of an API key.

        Raises:
            AuthorizationError: It is not known, was revoked, or has expired.
        """
        if not secret.startswith(PREFIX):
            return None
        key_id = secret[len(PREFIX) :].partition("_")[0]
        live = self._store.live(key_id)
        digest = hashlib.sha256(secret.encode()).digest()
        # Compared in the same time wherever they differ first.
        if live is None or not hmac.compare_digest(live.digest, digest):
            raise AuthorizationError("the API key is unknown or was revoked; request a new one")
        now = self._clock()
        if live.expires_at is not None and now >= live.expires_at:
            raise AuthorizationError("the API key has expired; request a new one")
        self._uses[key_id] = now
        if now - self._noted_at >= NOTE_MILLISECONDS and self._noting is None:
            self._noted_at = now
            self._noting = asyncio.get_running_loop().create_task(self.note(), name="astrocyte-key-uses")
            self._noting.add_done_callback(self._note_done)
        return live.caller

    async def note(self) -> None:
        """Store the times of the last use of keys."""
        uses, self._uses = self._uses, {}
        if uses:
            await self._store.note_uses(uses)

    async def create_api_key(self, caller: Caller, request: CreateApiKey) -> NewApiKey:
        """Create a key."""
        name, principal, expires_at = request.name, request.principal, request.expires_at
        self._require(caller, "CreateApiKey")
        field_checks.name(name, "name")
        field_checks.principal(principal, "principal")
        self._check.request_id(request.request_id)
        expires = None if expires_at is None else self._expiry(expires_at)
        key_id = secrets.token_hex(ID_BYTES)
        secret = f"{PREFIX}{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
        digest = hashlib.sha256(secret.encode()).digest()
        made, fresh = await self._store.create(
            NewKey(key_id, caller.tenant, name, principal, digest, expires),
            by=self._access.name(caller),
            request=key_of(request.request_id, "create_api_key", name, principal, expires_at),
        )
        return NewApiKey(made, secret if fresh else "")

    async def list_api_keys(self, caller: Caller, request: ListApiKeys) -> list[KeyInfo]:
        """All keys of the tenant."""
        del request
        self._require(caller, "ListApiKeys")
        return self._store.listed(caller.tenant)

    async def revoke_api_key(self, caller: Caller, request: RevokeApiKey) -> KeyInfo:
        """End a key."""
        self._require(caller, "RevokeApiKey")
        field_checks.name(request.key_id, "key_id")
        self._check.request_id(request.request_id)
        key = key_of(request.request_id, "revoke_api_key", request.key_id)
        return await self._store.revoke(caller.tenant, request.key_id, by=self._access.name(caller), request=key)

    def _require(self, caller: Caller, operation: str) -> None:
        """A key can stand for anybody in the tenant, so it takes admin everywhere in it to make one."""
        if not self._access.enabled and not caller.operator:
            raise FailedPrecondition(
                "access control is off, so API keys cannot be created over the network; create them with --data-dir, "
                "or "
                "set access_control.enabled"
            )
        self._access.require_pattern(caller, operation, NO_BANK)

    def _expiry(self, expires_at: datetime) -> int:
        field_checks.instant(expires_at, "expires_at")
        moment = round(expires_at.astimezone(UTC).timestamp() * 1_000)
        if moment <= self._clock():
            raise ValidationError("is in the past; expected a later time", field="expires_at")
        return moment

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._noting = None
        if not task.cancelled():
            # That a use was not noted is no reason to refuse a call.
            task.exception()
