"""A plain Recall and a plain Retain pass through few files and few calls of the package: counted, not timed."""

import pytest

from benches.profile_calls import Profile, profiles

# Files and calls of the package.
TARGETS = {"Recall": (25, 100), "Retain": (32, 200)}


@pytest.fixture(scope="module")
def counted() -> dict[str, Profile]:
    return profiles()


@pytest.mark.parametrize("name", TARGETS)
def test_a_plain_call_passes_through_few_files_and_calls(counted: dict[str, Profile], name: str) -> None:
    profile = counted[name]
    files, calls = TARGETS[name]
    assert len(profile.files) <= files, profile.files
    assert len(profile.calls) <= calls, profile.calls
    # Every call enters by a service, is checked by the policy, and reaches a pipeline and the store.
    assert {"services", "policy", "pipelines", "stores"} <= {file.split("/")[0] for file in profile.files}
