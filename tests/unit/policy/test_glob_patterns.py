import re
from fnmatch import translate

from hypothesis import given
from hypothesis import strategies as st

from astrocyte.policy.glob_patterns import covers, matches

PATTERNS = st.text("ab*?", max_size=8)
NAMES = st.text("ab", max_size=8)


@given(pattern=PATTERNS, name=st.text("ab[]", max_size=8))
def test_a_pattern_means_what_the_shell_says(pattern: str, name: str) -> None:
    assert matches(pattern, name) is bool(re.fullmatch(translate(pattern), name))


@given(wide=PATTERNS, narrow=PATTERNS, name=NAMES)
def test_what_covers_a_pattern_means_all_its_names(wide: str, narrow: str, name: str) -> None:
    if covers(wide, narrow) and matches(narrow, name):
        assert matches(wide, name)


@given(pattern=PATTERNS)
def test_a_pattern_covers_itself_and_star_covers_all(pattern: str) -> None:
    assert covers(pattern, pattern)
    assert covers("*", pattern)


def test_a_letter_is_no_wildcard_and_one_is_not_many() -> None:
    assert not covers("?", "*")
    assert not covers("user-?", "user-*")
    assert covers("user-*", "user-?")
    assert not covers("user-1", "user-*")
    assert not matches("user-[12]", "user-1")


def test_a_hostile_pattern_takes_no_time() -> None:
    assert not matches("*a" * 100 + "b", "a" * 255)
