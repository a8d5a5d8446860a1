"""The embedder of each bank's vectors, also during a reindex to another model.

A bank's handle may be older than the bank's last move, so it is not asked which model the bank has: its index is, which
holds vectors of one model, and what moved in the time of this process is remembered here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from astrocyte.errors import ConfigError, DimensionMismatch
from astrocyte.model import Bank, Embedding
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told


class EmbeddingSpaces:
    """The embedders by their models. Safe to use from any thread.

    Args:
        default: That of banks which name no model.
        others: What other banks may be moved to, or have.

    Raises:
        ConfigError: Two of them have the same model.
    """

    def __init__(self, default: Embedder, others: Iterable[Embedder] = ()) -> None:
        self.default = default
        # Never changes.
        self.by_model = {default.model_id: default}
        for embedder in others:
            if embedder.model_id in self.by_model:
                raise ConfigError(
                    f"embedders: two entries have the model {embedder.model_id!r}; name each model once",
                    metadata={"key": "embedders", "model": embedder.model_id},
                )
            self.by_model[embedder.model_id] = embedder
        # Banks that moved since this process began, by key: what is known of a bank from before does not say it.
        self.moved: dict[int, tuple[str, int]] = {}
        # Where banks are on their way to, by key.
        self.targets: dict[int, str] = {}

    @property
    def models(self) -> list[str]:
        """The models that this server can embed with, the default one first."""
        return list(self.by_model)

    def embedder(self, model: str) -> Embedder | None:
        """The embedder of a model; None where this server has none."""
        return self.by_model.get(model)

    def is_waited_for(self, model: str) -> bool:
        """True if the embedder of a model is not local."""
        embedder = self.by_model.get(model)
        return embedder is not None and not embedder.local

    def target(self, bank: Bank) -> Embedder | None:
        """The embedder of the model that a bank is reindexed to; None without a reindex."""
        model = self.targets.get(bank.key)
        return None if model is None else self.by_model.get(model)

    def aim(self, bank: Bank, model: str | None) -> None:
        """Add vectors of this model to writes into the bank from now on; None ends that."""
        if model is None:
            self.targets.pop(bank.key, None)
        else:
            self.targets[bank.key] = model

    def fresh(self, bank: Bank) -> Bank:
        """The bank with its current model."""
        moved = self.moved.get(bank.key)
        return bank if moved is None else replace(bank, embedding_model=moved[0], dimensions=moved[1])

    def fresh_each(self, banks: list[Bank]) -> list[Bank]:
        """As `fresh` for every bank."""
        return list(map(self.fresh, banks)) if self.moved else banks

    def on_commit(self, batch: IndexBatch) -> None:
        """Receive a commit that moved a bank, after the index has."""
        self.moved[batch.bank.key] = (batch.bank.embedding_model, batch.bank.dimensions)

    def on_told(self, told: Told, bank: Bank | None) -> None:
        """Receive a commit of another process, with the bank as it is now; None if it is gone."""
        if told.moved and bank is not None:
            self.moved[bank.key] = (bank.embedding_model, bank.dimensions)

    async def close(self) -> None:
        """Release the connections of all embedders."""
        for embedder in self.by_model.values():
            await embedder.close()


def check_space(bank: Bank, embedding: Embedding, at: str) -> None:
    """Raise `DimensionMismatch` where a vector does not live in the bank's space."""
    if embedding.model != bank.embedding_model:
        raise DimensionMismatch(
            f"bank {bank.bank_id!r} holds vectors of {bank.embedding_model!r}, got one of {embedding.model!r}",
            field=f"{at}embedding.model",
            metadata={"bank_model": bank.embedding_model, "model": embedding.model},
        )
    if embedding.dimensions != bank.dimensions:
        raise DimensionMismatch(
            f"bank {bank.bank_id!r} holds vectors of {bank.dimensions} dimensions, got {embedding.dimensions}",
            field=f"{at}embedding.dimensions",
            metadata={"bank_dimensions": str(bank.dimensions), "dimensions": str(embedding.dimensions)},
        )


def usable(vector: bytes) -> bytes | None:
    """The vector, or None where it is all zero: text without a known token has no direction."""
    return vector if vector.strip(b"\x00") else None
