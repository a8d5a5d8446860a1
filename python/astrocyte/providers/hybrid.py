"""A Tier-2 engine and this server's own pipeline for the same banks, combined in a program.

    hybrid = HybridEngineProvider(engine=engine, retain_target="engine", engine_recall_weight=1.5)
    brain.set_engine_provider(hybrid)

In a configuration the block ``engines`` says the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from astrocyte.config.engines import HybridSettings
from astrocyte.errors import ConfigError, ValidationError
from astrocyte.providers.engines import EngineProvider
from astrocyte.providers.options import read_options

# An engine is never asked for what its capabilities leave out, so it need not have the other methods.
ENGINE_METHODS = ("capabilities", "recall")


class PipelineOrchestrator:
    """Stands for the pipeline of the `Astrocyte` that a hybrid engine is given to, which has but one.

    Args:
        vector_store: The store of that one's settings, to be sure; ``...`` or None says nothing.
        llm_provider: Its language model, likewise.
    """

    def __init__(self, *, vector_store: Any = None, llm_provider: Any = None) -> None:  # noqa: ANN401 - a name, or ...
        said = {"vector_store": vector_store, "llm_provider": llm_provider}
        self.expected: dict[str, str] = {
            name: value for name, value in said.items() if value is not None and value is not ...
        }
        for name, value in self.expected.items():
            if not isinstance(value, str):
                raise ValidationError(
                    f"expected the name in the settings, or None, got {type(value).__name__}", field=name
                )

    def check(self, settings: Any) -> None:  # noqa: ANN401 - Settings, or what has its names
        """Refuse a pipeline whose settings differ.

        Raises:
            ConfigError: It is.
        """
        for name, value in self.expected.items():
            if getattr(settings, name) != value:
                raise ConfigError(
                    f"the pipeline expects {name} {value!r}, the settings have {getattr(settings, name)!r}; change one "
                    "of them",
                    metadata={"key": name},
                )


def check_engine(engine: object) -> None:
    """Refuse what is no engine.

    Raises:
        ValidationError: It lacks a method of `EngineProvider`.
    """
    missing = [name for name in ENGINE_METHODS if not callable(getattr(engine, name, None))]
    if missing:
        raise ValidationError(
            f"expected an EngineProvider, got {type(engine).__name__}, which has no {', '.join(missing)}",
            field="engine",
        )


@dataclass(frozen=True, slots=True)
class HybridEngineProvider:
    """An engine, and how it shares the work with the pipeline; see `astrocyte.config.engines.HybridSettings`.

    Args:
        engine: An `EngineProvider`.
        pipeline: The pipeline of the `Astrocyte` that this is given to; None is the same.
        retain_target: Where memories go: "engine", "pipeline" or "both".
        engine_recall_weight: Factor of the engine's hits.
        pipeline_recall_weight: Factor of the pipeline's hits.
        name: What traces and errors call the engine.
        options: Further fields of `HybridSettings` by name, such as ``banks`` and ``require_both``.
    """

    engine: EngineProvider
    pipeline: PipelineOrchestrator | None = None
    retain_target: str = "pipeline"
    engine_recall_weight: float = 1.0
    pipeline_recall_weight: float = 1.0
    name: str = "engine"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no engine."""
        check_engine(self.engine)

    def settings(self) -> HybridSettings:
        """The equivalent block of settings.

        Raises:
            ConfigError: A value is out of its range, or an option is unknown.
        """
        said = {
            "retain_target": "pipeline" if self.retain_target == "local" else self.retain_target,
            "engine_recall_weight": self.engine_recall_weight,
            "pipeline_recall_weight": self.pipeline_recall_weight,
            # An engine that can answer is asked to.
            "reflect_target": "engine" if self.engine.capabilities().reflect else "pipeline",
        }
        return read_options(HybridSettings, {**said, **self.options}, "HybridEngineProvider")
