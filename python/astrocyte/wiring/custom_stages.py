"""The steps of the pipelines that the settings take from others, each behind a breaker of its own."""

from __future__ import annotations

import inspect

import structlog

from astrocyte.config import Settings
from astrocyte.pipelines.custom import chunking, fusion, query_analysis
from astrocyte.pipelines.custom.bounded_call import BoundedStage
from astrocyte.pipelines.custom.chunking import CustomChunking
from astrocyte.pipelines.custom.fusion import CustomFusion
from astrocyte.pipelines.custom.query_analysis import CustomAnalysis
from astrocyte.pipelines.custom.recall_stages import RecallStages
from astrocyte.pipelines.custom.retrieval_arms import CustomArm, CustomArms
from astrocyte.pipelines.graph.retrieval_arm import ARM as GRAPH_ARM
from astrocyte.pipelines.graph.retrieval_arm import GraphArm
from astrocyte.pipelines.recall.llm_reranker import ModelReranker
from astrocyte.pipelines.recall.reranking import STAGE, Outbound, Reranking
from astrocyte.pipelines.reflect import custom_synthesis
from astrocyte.pipelines.reflect.custom_synthesis import CustomSynthesis
from astrocyte.policy.events import emit
from astrocyte.providers.circuit_breaker import Breaker
from astrocyte.providers.protocols import LanguageModel, is_local
from astrocyte.providers.registry import create_reranker
from astrocyte.providers.stage_registry import (
    create_chunker,
    create_fusion,
    create_query_analyser,
    create_retrieval_arm,
    create_synthesiser,
)

log = structlog.get_logger(__name__)


class Stages:
    """Those that the settings name; None for the built-in ones.

    Args:
        settings: Which, and how long they may take.
        model: The language model, if there is one.
        outbound: Makes of texts what may leave this process, for rerankers that are not part of it.
        graph_arm: The arm over the entity graph, which runs beside the custom arms if it has a weight.

    Raises:
        ConfigError: One is not there, cannot be made, or has not what it needs.
    """

    def __init__(
        self, settings: Settings, model: LanguageModel | None, outbound: Outbound, graph_arm: GraphArm
    ) -> None:
        self._settings = settings
        self._graph_arm = graph_arm
        self._made: list[object] = []
        self.reranking = create_reranking(settings, model, outbound)
        self.chunking = self._chunking()
        self.recall = RecallStages(self._analysis(), self._arms(), self._fusion())
        self.synthesis = self._synthesis()

    async def close(self) -> None:
        """Release them; one that cannot be released does not keep the others from it."""
        if self.reranking is not None:
            await self.reranking.close()
        for one in self._made:
            close = getattr(one, "close", None)
            if inspect.iscoroutinefunction(close):
                try:
                    await close()
                except Exception as error:  # noqa: BLE001 - others wrote it
                    log.warning("stage_not_closed", stage=type(one).__name__, error=type(error).__name__)

    def _chunking(self) -> CustomChunking | None:
        block = self._settings.pipeline.chunking
        if block.custom_chunker is None:
            return None
        made = create_chunker(block.custom_chunker, block.options)
        return CustomChunking(made, self._bounded(made, chunking.STAGE, "retain", block.timeout_seconds))

    def _analysis(self) -> CustomAnalysis | None:
        block = self._settings.pipeline.query_analysis
        if block.custom_analyser is None:
            return None
        made = create_query_analyser(block.custom_analyser, block.options)
        return CustomAnalysis(made, self._bounded(made, query_analysis.STAGE, "recall", block.timeout_seconds))

    def _arms(self) -> CustomArms | None:
        arms = {}
        graph = self._settings.entity_graph
        if graph.enabled and graph.recall_weight:
            bounded = self._bounded(self._graph_arm, GRAPH_ARM, "recall", graph.recall_seconds)
            arms[GRAPH_ARM] = CustomArm(self._graph_arm, graph.recall_weight, bounded)
        for name, block in self._settings.pipeline.retrieval.custom_arms.items():
            made = create_retrieval_arm(name, block.arm, block.options)
            arms[name] = CustomArm(made, block.weight, self._bounded(made, name, "recall", block.timeout_seconds))
        return CustomArms(arms, self._settings.recall) if arms else None

    def _fusion(self) -> CustomFusion | None:
        block = self._settings.pipeline.fusion
        if block.custom_fusion is None:
            return None
        made = create_fusion(block.custom_fusion, block.options)
        stage = self._bounded(made, fusion.STAGE, "recall", block.timeout_seconds)
        return CustomFusion(block.custom_fusion, made, stage)

    def _synthesis(self) -> CustomSynthesis | None:
        block = self._settings.pipeline.reflect
        if block.custom_synthesiser is None:
            return None
        made = create_synthesiser(block.custom_synthesiser, block.options)
        return CustomSynthesis(made, self._bounded(made, custom_synthesis.STAGE, "reflect", block.deadline_seconds))

    def _bounded(self, made: object, stage: str, operation: str, seconds: float) -> BoundedStage:
        self._made.append(made)
        return BoundedStage(stage, operation, seconds, Breaker(stage, self._settings.escalation.circuit_breaker), _note)


def _note(operation: str, bank_id: str, stage: str, reason: str) -> None:
    """A call went without a step."""
    emit("degraded", operation=operation, bank_id=bank_id, provider=stage, mode=f"{stage}: {reason}")


DISABLED, MODEL = "disabled", "llm"


def create_reranking(settings: Settings, model: LanguageModel | None, outbound: Outbound) -> Reranking | None:
    """The reranker of the settings, or None.

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
                ("pipeline", "reranking", "mode"), "is llm, which needs a language model; set llm_provider"
            )
        return Reranking(ModelReranker(model), block, _reranking_failed, outbound)
    reranker = create_reranker(block.mode, block.options)
    return Reranking(reranker, block, _reranking_failed, None if is_local(reranker) else outbound)


def _reranking_failed(bank_id: str, reranker: str, reason: str) -> None:
    """A recall went without."""
    emit("degraded", operation="recall", bank_id=bank_id, provider=reranker, mode=f"{STAGE}: {reason}")
