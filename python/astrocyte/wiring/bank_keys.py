"""Opens the keys of encrypted banks, and refuses settings that would keep content beside them."""

from __future__ import annotations

from collections.abc import Iterator

from astrocyte.config import Settings
from astrocyte.model import ENTITY_SCOPE
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.stores.sealing.values import BankKeys

_SECTION = ("store", "encryption")


def check_unsealed(settings: Settings) -> None:
    """Refuse encryption where the store is SQLite.

    Raises:
        ConfigError: It is switched on.
    """
    if settings.store.encryption.enabled:
        raise settings.refusal(
            (*_SECTION, "enabled"),
            "needs store.backend: postgres; the embedded store overwrites what is erased, in its log too",
        )


def bank_keys(settings: Settings, dsn: str) -> BankKeys | None:
    """The keys of banks; None where banks are not encrypted.

    Args:
        settings: Where they are kept.
        dsn: Address of the memories.

    Raises:
        ConfigError: A setting is missing or excluded, or the master key is another one than that of the keys.
        StoreError, Unavailable: The keys cannot be reached.
    """
    own = settings.store.encryption
    if not own.enabled:
        return None
    for path, problem in _excluded(settings):
        raise settings.refusal(path, f"{problem}; change this, or set store.encryption.enabled to false")
    try:
        from astrocyte.stores.sealing.key_stores import (  # noqa: PLC0415 - its package is an extra
            CHECK,
            KeyDirectory,
            KeyStore,
            checked,
            master_key,
            place_of,
        )
        from astrocyte.stores.sealing.keyring import Keyring  # noqa: PLC0415 - as above
    except ImportError as error:
        raise settings.refusal(
            (*_SECTION, "enabled"), "needs a package of its own; install astrocyte-grpc[encryption]"
        ) from error
    master = _master(settings)
    keys: KeyStore
    if own.keys == "directory":
        if own.directory is None:
            raise settings.refusal((*_SECTION, "directory"), "the directory of the keys is missing")
        keys = KeyDirectory(own.directory.expanduser())
    else:
        from astrocyte.stores.sealing.key_database import KeyDatabase  # noqa: PLC0415 - as above

        if own.dsn is None:
            raise settings.refusal((*_SECTION, "dsn"), "the address of the database of the keys is missing")
        keys = KeyDatabase(own.dsn.get_secret_value(), dsn, settings.store.connect_seconds)
    try:
        is_new = keys.read(CHECK) is None
        fitting = checked(keys, None if master is None else master_key(master))
        return Keyring(fitting, is_new=is_new, place=place_of(fitting))
    except BaseException:
        keys.close()
        raise


def _master(settings: Settings) -> str | None:
    own = settings.store.encryption
    if own.master_key_file is None:
        return None if own.master_key is None else own.master_key.get_secret_value()
    path = (*_SECTION, "master_key_file")
    if own.master_key is not None:
        raise settings.refusal(path, "master_key is set too; set one of them")
    try:
        return own.master_key_file.expanduser().read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise settings.refusal(path, f"the file cannot be read ({type(error).__name__})") from error


def _excluded(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Settings by which names that content holds would be stored where SQL compares them."""
    if settings.entity_graph.enabled:
        yield ("entity_graph", "enabled"), "the names of an entity graph cannot be encrypted"
    if settings.pipeline.entity_extraction.mode != "disabled":
        yield ("pipeline", "entity_extraction", "mode"), "names that are searched for cannot be encrypted"
    for own in Overrides(settings).every:
        if any(scope.casefold().startswith(ENTITY_SCOPE) for scope in own.observations.consolidation.scopes):
            yield ("observations", "consolidation", "scopes"), "names of entities in scopes cannot be encrypted"
    for name, profile in settings.extraction_profiles.items():
        if profile.entity_extraction not in {None, False, True, "disabled"}:
            yield ("extraction_profiles", name, "entity_extraction"), "names that are searched for cannot be encrypted"
