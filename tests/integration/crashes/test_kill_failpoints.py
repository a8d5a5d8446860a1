"""A server that dies at a named step loses nothing, and brings nothing back."""

import re
from pathlib import Path

import pytest

from failpoints import (
    CONSOLIDATION_POINTS,
    LIFECYCLE_POINTS,
    POINTS,
    REINDEX_POINTS,
    TIER_POINTS,
    WIKI_POINTS,
    FailpointRun,
)

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
# The long run is `python tests/failpoints.py --cycles 2000`.
CYCLES = len(POINTS)


@pytest.mark.timeout(400)
async def test_a_death_at_any_step_loses_nothing_and_brings_nothing_back(tmp_path: Path) -> None:
    run = FailpointRun(tmp_path, seed=5)
    report = await run.run(CYCLES)
    assert report.violations == [], (report, run.hit)
    # On a slow machine some points are not met in time.
    assert len(run.hit) >= len(POINTS) - 4, run.hit


def test_all_points_are_known_and_explained() -> None:
    sources = [*(ROOT / "rust_core").rglob("*.rs"), *(ROOT / "python/astrocyte").rglob("*.py")]
    call = re.compile(r'(?:failpoint::reach|failpoint)\("([a-z.]+)"\)')
    named = {name for path in sources for name in call.findall(path.read_text(encoding="utf-8"))}
    derived = {*CONSOLIDATION_POINTS, *WIKI_POINTS, *LIFECYCLE_POINTS}
    assert named == {*POINTS, *REINDEX_POINTS, *TIER_POINTS, *derived}
    families = "|".join(sorted({name.partition(".")[0] for name in named}))
    explained = re.findall(rf"`((?:{families})\.[a-z]+)`", (ROOT / "docs/restarts.md").read_text("utf-8"))
    assert set(explained) == named
