"""Settings of bounded boosts and utility."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from astrocyte.config.loading.section import Section

# In standard deviations of an arm's scores; with rrf, in multiples of an arm's first rank.
Lift = Annotated[float, Field(ge=0.0, le=100.0)]
Days = Annotated[float, Field(gt=0.0, le=36_500.0)]


class BoundedBoost(Section):
    """Weight per unit and upper bound of a boost."""

    weight: Lift = Field(
        0.0, description="Weight per unit, in standard deviations of an arm's scores; 0 disables the boost."
    )
    bound: Lift = Field(1.0, description="Upper bound, in the same unit.")


class RecencyBoost(BoundedBoost):
    """Boosts recent events: one unit for the bank's newest memory, halved every half-life."""

    half_life_days: Days = Field(
        30.0, description="Half-life, counted back from the bank's newest memory or query_reference_date."
    )


class ProofBoost(BoundedBoost):
    """Boosts confirmed memories: one unit for each confirmation after the first."""

    metadata_key: str = Field("proof_count", min_length=1, description="Metadata key of the number of confirmations.")


class OwnBoost(BoundedBoost):
    """Boosts the asker's statements by one unit if the query is in the first person (I, my, we)."""

    # Values from 1 to 2 perform alike on the only set with first-person questions.
    weight: Lift = Field(
        1.5, description="Weight per unit, in standard deviations of an arm's scores; 0 disables the boost."
    )
    bound: Lift = Field(1.5, description="Upper bound, in the same unit.")
    speakers: tuple[str, ...] = Field(
        ("user", "human", "me"),
        description="Speaker names of the asker, in lower case.",
    )


class KindBoost(BoundedBoost):
    """Boosts memories that name a thing of the kind of which the query asks a list (instruments, dishes, places)."""

    # From 2.5 to 4 multi-hop questions of LoCoMo gain alike, and below that less.
    weight: Lift = Field(
        2.5, description="Weight per unit, in standard deviations of an arm's scores; 0 disables the boost."
    )
    bound: Lift = Field(2.5, description="Upper bound, in the same unit.")


class TurnBoosts(Section):
    """Boosts of the first 20 candidates by who said them, what kind of turn they are, and when they happened."""

    # From 1.5 to 3 a larger weight gains recall on LoCoMo; 2 is that which other conversations confirmed.
    speaker: Lift = Field(
        2.0,
        description="Boost of what a speaker said if the query names exactly one known speaker, in standard deviations "
        "of an arm's scores; 0 disables it.",
    )
    question: Lift = Field(
        1.0,
        description="Amount that a short question loses to which another speaker's turn is the next; that turn moves "
        "half-way up to it. Not in conversations with an assistant. 0 disables it.",
    )
    date: Lift = Field(
        1.0, description="Boost of memories inside a time window of the query of up to 31 days; 0 disables it."
    )


class BoostSettings(Section):
    """Bounded boosts. All except own, turns and kinds are off: they lose more than they gain (docs/quality.md)."""

    own: OwnBoost = OwnBoost()
    turns: TurnBoosts = TurnBoosts()
    kinds: KindBoost = KindBoost()

    recency: RecencyBoost = RecencyBoost()
    frequency: BoundedBoost = Field(
        BoundedBoost(),
        description="One unit for each doubling of the number of times the memory was a hit since the server started.",
    )
    proof: ProofBoost = ProofBoost()
    names: BoundedBoost = Field(
        BoundedBoost(), description="One unit for each name in the query that the text or speaker contains."
    )
    quotes: BoundedBoost = Field(
        BoundedBoost(), description="One unit for each quoted phrase of the query that the text contains."
    )
    utility: BoundedBoost = Field(BoundedBoost(), description="One unit for a utility of 1; see recall.utility.")
    pool: Annotated[int, Field(ge=10, le=200)] = Field(
        20, description="Number of candidates for stages after the core, if one of them applies to the query."
    )


class UtilitySettings(Section):
    """Utility of a memory, from 0 to 1, from usage since the server started. It is not persisted."""

    enabled: bool = Field(False, description="Return the utility with each hit. Boosts that use it work without this.")
    recency: Lift = Field(0.3, description="Weight of the last time it was a hit.")
    recency_half_life_days: Days = Field(7.0, description="Half-life of recency.")
    frequency: Lift = Field(0.2, description="Weight of how often it was a hit; saturates at a hundred.")
    relevance: Lift = Field(0.3, description="Weight of its mean rank; 1 if it was always first.")
    freshness: Lift = Field(0.2, description="Weight of its age.")
    freshness_half_life_days: Days = Field(28.0, description="Half-life of freshness.")
    entries: Annotated[int, Field(ge=1)] = Field(
        10_000, description="Number of memories with usage statistics; the least recently used are dropped."
    )
