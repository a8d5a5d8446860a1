"""All patterns of the words between two names that state a relation, in the order in which they are tried."""

from __future__ import annotations

from astrocyte.pipelines.graph.patterns.social import SOCIAL_PATTERNS
from astrocyte.pipelines.graph.patterns.words import Pattern
from astrocyte.pipelines.graph.patterns.work import WORK_PATTERNS
from astrocyte.pipelines.graph.patterns.world import WORLD_PATTERNS

PATTERNS: tuple[Pattern, ...] = (*WORK_PATTERNS, *WORLD_PATTERNS, *SOCIAL_PATTERNS)
