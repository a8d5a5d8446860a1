"""Settings of agents' private memory and of canonical terms."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr

from astrocyte.config.loading.section import Cosine, Count, Section


class AgentMemorySettings(Section):
    """Private memory of agents, in a database of its own, and the canonical terms of all agents."""

    dsn: SecretStr | None = Field(
        None,
        min_length=1,
        description="PostgreSQL database of the private memories, such as "
        "`postgresql://user:password@host/agent_memory_db`. Without it, they are in `agent_memory.db` in `data_dir`.",
    )
    update_similarity: Cosine = Field(
        0.92, description="Cosine above which Remember updates the nearest memory of the same topic."
    )
    decay_days: Annotated[float, Field(gt=0.0, le=36_500.0)] = Field(
        90.0, description="Days after which the score of a private memory has fallen to 1/e of its similarity."
    )
    min_similarity: Annotated[float, Field(ge=-1.0, le=1.0)] = Field(
        0.2, description="Smallest cosine of a hit. An answer without hits counts as a recall with zero hits."
    )
    shared_banks: list[str] = Field(
        default_factory=list,
        description="Banks whose memories are blended into recalls as canonical hits, where the caller may read them.",
    )
    auditors: list[str] = Field(
        default_factory=list, description="Principals that may list the memories of any agent of their tenant."
    )
    term_similarity: Annotated[float, Field(ge=0.5, le=1.0)] = Field(
        0.88, description="Smallest similarity of spelling by which a lookup finds a term."
    )
    max_terms: Count = Field(20_000, description="Approved terms of a tenant; a further approval is refused.")
