"""Which reranker the settings name, and who hears when a recall goes without it."""

from __future__ import annotations

from astrocyte.config import Settings
from astrocyte.pipelines.model_reranking import ModelReranker
from astrocyte.pipelines.reranking import STAGE, Outbound, Reranking
from astrocyte.policy.events import emit
from astrocyte.providers.protocols import LanguageModel, is_local
from astrocyte.providers.registry import create_reranker

DISABLED, MODEL = "disabled", "llm"


def create_reranking(settings: Settings, model: LanguageModel | None, outbound: Outbound) -> Reranking | None:
    """What reads the best candidates once more, or None.

    Args:
        settings: Who.
        model: The language model, if there is one.
        outbound: Makes of texts what may leave this process, for all that do not say that they are part of it.

    Raises:
        ConfigError: There is no such reranker, it cannot be made, or there is no language model for it.
    """
    block = settings.pipeline.reranking
    if block.mode in {DISABLED, MODEL}:
        if block.options:
            problem = f"has no effect while mode is {block.mode}; name a reranker that takes options"
            raise settings.refusal(("pipeline", "reranking", "options"), problem)
        if block.mode == DISABLED:
            return None
        if model is None:
            raise settings.refusal(
                ("pipeline", "reranking", "mode"), "is llm and there is no language model; set llm_provider"
            )
        return Reranking(ModelReranker(model), block, _note, outbound)
    reranker = create_reranker(block.mode, block.options)
    return Reranking(reranker, block, _note, None if is_local(reranker) else outbound)


def _note(bank_id: str, reranker: str, reason: str) -> None:
    """A recall went without."""
    emit("degraded", operation="recall", bank_id=bank_id, provider=reranker, mode=f"{STAGE}: {reason}")
