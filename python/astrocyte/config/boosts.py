"""What may lift a memory beside its relevance, how much for each unit, and how much at the most."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from astrocyte.config.section import Section

# In deviations of an arm's scores; with rrf, in first places of an arm.
Lift = Annotated[float, Field(ge=0.0, le=100.0)]
Days = Annotated[float, Field(gt=0.0, le=36_500.0)]


class BoundedBoost(Section):
    """What one unit adds to a memory's score, and the most that all of them may add."""

    weight: Lift = Field(0.0, description="Of one unit, in deviations of an arm's scores; 0 is off.")
    bound: Lift = Field(1.0, description="The most it adds, in the same measure.")


class RecencyBoost(BoundedBoost):
    """Lifts what happened lately: one unit for the bank's newest memory, half after every half-life."""

    half_life_days: Days = Field(30.0, description="From the bank's newest memory, or query_reference_date, back.")


class ProofBoost(BoundedBoost):
    """Lifts what further memories confirm: one unit for each confirmation after the first."""

    metadata_key: str = Field("proof_count", min_length=1, description="Metadata that holds their number.")


class OwnBoost(BoundedBoost):
    """Lifts what the asker said: one unit, where the question is in the first person (I, my, we)."""

    # From 1 to 2 all do about the same on the one set whose questions are asked so.
    weight: Lift = Field(1.5, description="Of one unit, in deviations of an arm's scores; 0 is off.")
    bound: Lift = Field(1.5, description="The most it adds, in the same measure.")
    speakers: tuple[str, ...] = Field(
        ("user", "human", "me"),
        description="Speakers who are the asker, in lower case.",
    )


class BoostSettings(Section):
    """Bounded boosts. All but own are off: on the development sets they gain less than they lose (docs/quality.md)."""

    own: OwnBoost = OwnBoost()

    recency: RecencyBoost = RecencyBoost()
    frequency: BoundedBoost = Field(
        BoundedBoost(),
        description="One unit for each doubling of how often it was a hit since the server started.",
    )
    proof: ProofBoost = ProofBoost()
    names: BoundedBoost = Field(
        BoundedBoost(), description="One unit for each name of the question that text or speaker holds."
    )
    quotes: BoundedBoost = Field(
        BoundedBoost(), description="One unit for each phrase in quotation marks that the text holds."
    )
    utility: BoundedBoost = Field(BoundedBoost(), description="One unit for a utility of 1; see recall.utility.")
    pool: Annotated[int, Field(ge=10, le=200)] = Field(
        20, description="Candidates that stages after the core look at, if any has something to do for the query."
    )


class UtilitySettings(Section):
    """How useful a memory has been, from 0 to 1: counted since the server started, and forgotten when it stops."""

    enabled: bool = Field(False, description="Tell it with each hit; a boost that needs it counts without this.")
    recency: Lift = Field(0.3, description="Share of when it was last among the hits.")
    recency_half_life_days: Days = Field(7.0, description="After which that counts half.")
    frequency: Lift = Field(0.2, description="Share of how often it was among the hits; full at a hundred times.")
    relevance: Lift = Field(0.3, description="Share of its mean place among them: 1 for always the first.")
    freshness: Lift = Field(0.2, description="Share of its age.")
    freshness_half_life_days: Days = Field(28.0, description="After which that counts half.")
    entries: Annotated[int, Field(ge=1)] = Field(10_000, description="Memories that are counted, the last used.")
