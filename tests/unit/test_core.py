"""The border to the compiled core: values in, values out, and nothing but our errors across it."""

from __future__ import annotations

import itertools
import pickle
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astrocyte import core
from astrocyte.core import (
    Bank,
    Core,
    Hit,
    RecallRequest,
    Row,
    content_hash,
    count_tokens,
    fuse_banks,
    split_budget,
    summarise,
    vector_bytes,
    vector_values,
)
from astrocyte.errors import AstrocyteError, DimensionMismatch, StoreError, ValidationError

DIMENSIONS = 8
UNIT = vector_bytes([1.0, *[0.0] * (DIMENSIONS - 1)])


def memory_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def row(number: int, text: str = "tea", vector: bytes | None = UNIT) -> Row:
    return Row(number, memory_id(number), content_hash(text), text, vector, tokens=1, known_from=0)


@pytest.fixture
def bank() -> Bank:
    return Core().bank(DIMENSIONS)


def test_a_row_is_found_by_its_words_and_by_its_vector(bank: Bank) -> None:
    bank.apply(1, [row(1, "green tea"), row(2, "black coffee", vector_bytes([0.0, 1.0, *[0.0] * 6]))])
    response = bank.recall(RecallRequest(text="teas", vector=UNIT))
    best = response.hits[0]
    assert (best.key, best.memory_id, best.ordinal, best.tokens) == (1, memory_id(1), -1, 1)
    assert {response.arm_names[arm] for arm, _, _ in best.arms} == {"semantic", "keyword"}
    assert [rank for _, rank, _ in best.arms] == [1, 1]
    assert response.position == bank.position == 1


def test_an_empty_bank_answers_with_nothing(bank: Bank) -> None:
    response = bank.recall(RecallRequest(text="tea", vector=UNIT))
    assert response.hits == []
    assert (response.candidates, response.allowed, response.position) == (0, 0, 0)


def test_more_hits_wanted_than_there_are(bank: Bank) -> None:
    bank.apply(1, [row(number, f"tea {number}") for number in range(1, 4)])
    response = bank.recall(RecallRequest(text="tea", vector=UNIT, k=10**6, depth=10**6))
    assert sorted(hit.key for hit in response.hits) == [1, 2, 3]


def test_no_hits_wanted(bank: Bank) -> None:
    bank.apply(1, [row(1)])
    assert bank.recall(RecallRequest(text="tea", k=0)).hits == []


def test_an_applied_position_is_not_applied_again(bank: Bank) -> None:
    bank.apply(1, [row(1)])
    bank.apply(1, [row(2)])
    assert bank.stats()["memories"] == 1


def test_a_removed_row_is_gone_and_an_ended_one_is_of_the_past(bank: Bank) -> None:
    bank.apply(1, [row(1, "tea one"), row(2, "tea two")])
    bank.apply(2, ended=[(1, 100)], removed=[2])
    assert bank.recall(RecallRequest(text="tea")).hits == []
    assert [hit.key for hit in bank.recall(RecallRequest(text="tea", as_of=50)).hits] == [1]


@pytest.mark.parametrize(
    ("vector", "kind", "field"),
    [
        (UNIT[:-4], DimensionMismatch, "embedding"),
        (UNIT + UNIT, DimensionMismatch, "embedding"),
        (vector_bytes([float("nan")] * DIMENSIONS), ValidationError, "vector"),
        (vector_bytes([float("inf")] * DIMENSIONS), ValidationError, "vector"),
        (vector_bytes([0.0] * DIMENSIONS), ValidationError, "vector"),
    ],
)
def test_a_bad_vector_refuses_the_whole_batch(
    bank: Bank, vector: bytes, kind: type[ValidationError], field: str
) -> None:
    with pytest.raises(kind, match="row 1") as caught:
        bank.apply(1, [row(1), row(2, vector=vector)])
    assert caught.value.field == field
    assert bank.stats()["memories"] == bank.position == 0
    with pytest.raises(kind):
        bank.recall(RecallRequest(vector=vector))
    with pytest.raises(kind):
        bank.near_duplicates([vector], 0.9)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: RecallRequest(k=-1), "k"),
        (lambda: RecallRequest(k=10**30), "k"),
        (lambda: RecallRequest(k=1.5), "k"),  # type: ignore[arg-type]
        (lambda: RecallRequest(text="a secret \ud800"), "text"),
        (lambda: RecallRequest(tags=["fine", "\udfff"]), "tags"),
        (lambda: RecallRequest(tags="abc"), "tags"),
        (lambda: RecallRequest(text=b"bytes"), "text"),  # type: ignore[arg-type]
        (lambda: RecallRequest(vector=b"abc"), "vector"),
        (lambda: RecallRequest(memory_ids=[b"short"]), "memory_ids"),
        (lambda: RecallRequest(weights=(1.0, 2.0)), "weights"),  # type: ignore[arg-type]
        (lambda: RecallRequest(tag_match="most"), "tag_match"),
        (lambda: RecallRequest(fusion="borda"), "fusion"),
        (lambda: Row(-1, bytes(16), bytes(16), "", None, tokens=0, known_from=0), "key"),
        (lambda: Row(1, bytes(15), bytes(16), "", None, tokens=0, known_from=0), "memory_id"),
        (lambda: Row(1, bytes(16), bytes(16), "", None, tokens=0, known_from=2**63), "known_from"),
        (lambda: content_hash("\ud800"), "text"),
        (lambda: count_tokens("\ud800"), "text"),
    ],
)
def test_a_value_of_the_wrong_kind_names_its_argument(make: Callable[[], object], field: str) -> None:
    with pytest.raises(ValidationError) as caught, core.translated_errors():
        make()
    assert caught.value.field == field
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_weights_are_finite_and_not_negative(bank: Bank, value: float) -> None:
    with pytest.raises(ValidationError, match="weights"):
        bank.recall(RecallRequest(text="tea", weights=(value, 1.0, 1.0)))


@pytest.mark.parametrize("dimensions", [0, 10**6, -1, 2**70])
def test_a_bank_has_a_sensible_number_of_dimensions(dimensions: int) -> None:
    with pytest.raises(ValidationError) as caught:
        Core().bank(dimensions)
    assert not isinstance(caught.value, DimensionMismatch)


def test_faults_of_ours_are_store_errors() -> None:
    with pytest.raises(StoreError, match="model table"):
        core.StaticEmbedder(b"no table")
    with pytest.raises(StoreError, match="scratch file"):
        Core("/proc/no-such-directory")


def test_recall_many_equals_single_calls() -> None:
    owner = Core()
    banks = [owner.bank(DIMENSIONS) for _ in range(3)]
    for number, each in enumerate(banks):
        each.apply(1, [row(10 * number + at, f"tea number {at}") for at in range(5)])
    requests = [(each, RecallRequest(text=f"number {at}", vector=UNIT)) for each in banks for at in range(5)]
    together = [[(hit.key, hit.score) for hit in response.hits] for response in owner.recall_many(requests)]
    single = [[(hit.key, hit.score) for hit in each.recall(request).hits] for each, request in requests]
    assert together == single
    assert owner.recall_many([]) == []


def test_one_request_to_several_banks_is_that_to_each() -> None:
    owner = Core()
    banks = [owner.bank(DIMENSIONS) for _ in range(5)]
    for number, each in enumerate(banks):
        each.apply(1, [row(10 * number + at, f"tea number {at}") for at in range(5)])
    request = RecallRequest(text="number 3", vector=UNIT, k=2)
    together = owner.recall_many([(each, request) for each in banks])
    alone = [each.recall(request) for each in banks]
    assert [response.passages for response in together] == [response.passages for response in alone]
    assert [len(response.hits) for response in together] == [2] * 5
    with pytest.raises(DimensionMismatch):
        owner.recall_many([(banks[0], request), (owner.bank(DIMENSIONS + 1), request)])


def test_a_summary_says_what_the_answers_say() -> None:
    owner = Core()
    full, empty = owner.bank(DIMENSIONS), owner.bank(DIMENSIONS)
    full.apply(3, [row(at, f"tea number {at}") for at in range(5)])
    asked = [(full, RecallRequest(text="number 3", vector=UNIT, k=2)), (empty, RecallRequest(vector=UNIT))]
    answers = owner.recall_many([*asked, (full, RecallRequest(text="tea", budget=2))])
    candidates, truncated, arms, banks, confidences = summarise(answers)
    assert candidates == sum(answer.candidates for answer in answers)
    assert truncated is any(answer.truncated for answer in answers) is True
    assert banks == [(len(answer.hits), answer.position) for answer in answers] == [(2, 3), (0, 0), (2, 3)]
    for name, count, micros in arms:
        told = [answer.trace for answer in answers if name in answer.trace.arm_candidates]
        assert count == sum(trace.arm_candidates[name] for trace in told)
        assert micros == pytest.approx(sum(trace.arm_millis[name] * 1e3 for trace in told))
    found = [answer.confidence for answer in answers]
    assert [one is None for one in found] == [not answer.hits for answer in answers]
    assert confidences == [one for one in found if one is not None]
    assert summarise([]) == (0, False, [], [], [])


def test_a_list_that_does_not_fit_its_hits_is_refused() -> None:
    hit = Hit(1, memory_id(1), memory_id(1), [(0, 1, 0.5)])
    arms = [("semantic", 1.0, 3, 0.0, 1.0)]
    for wrong in (
        (1.0, [hit], None, "", (), -1),
        (1.0, [hit], [], "", (), -1),
        (1.0, [hit], arms, "", (1.0, 2.0), -1),
        (1.0, [hit], arms, "", (), 1),
    ):
        with pytest.raises(ValidationError):
            fuse_banks([wrong], weights=(1.0, 1.0, 1.0), fusion="rrf", rank_constant=60.0, dedup=True, most=10)
    with pytest.raises(ValidationError):
        split_budget([(1, 10)], [1.0], 100, 10)


def test_exact_and_near_duplicates(bank: Bank) -> None:
    bank.apply(1, [row(1, "green tea")])
    assert bank.contains_hashes([content_hash(" green\n tea"), content_hash("Green tea")]) == [memory_id(1), None]
    other = vector_bytes([0.0, 1.0, *[0.0] * 6])
    (found,), missed = bank.near_duplicates([UNIT, other], 0.9)
    assert found[:2] == (1, memory_id(1))
    assert found[2] == pytest.approx(1.0)
    assert missed == []
    bank.apply(2, [row(number) for number in range(2, 9)])
    nearest = bank.near_duplicates([UNIT] * 5, 0.9)
    assert [[key for key, _, _ in hits] for hits in nearest] == [[1, 2, 3, 4]] * 5


def test_objects_cannot_be_changed_derived_from_or_pickled() -> None:
    request = RecallRequest(text="tea")
    with pytest.raises(AttributeError):
        request.text = "coffee"  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="base type"):
        type("Other", (Row,), {})
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(request)
    with pytest.raises(TypeError, match="cannot create"):
        core.Answer()


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_the_interpreter_runs_on_while_the_core_works() -> None:
    # One long "word" takes the token counter some hundred milliseconds.
    spans: list[tuple[float, float]] = []

    def work() -> None:
        start = time.perf_counter()
        count_tokens("a" * 600_000)
        spans.append((start, time.perf_counter()))

    thread = in_thread(work)
    ticks = []
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.0005)
    ((start, end),) = spans
    inside = [tick for tick in ticks if start < tick < end]
    # A held lock would leave no tick inside, or those of one switch at each end.
    assert len(inside) > 10


def test_readers_see_whole_batches_while_a_writer_applies(bank: Bank) -> None:
    # Each batch puts a pair in the place of another: a reader must always see exactly one pair.
    bank.apply(1, [row(0, "tea even"), row(1, "tea odd")])
    stop = threading.Event()
    failures: list[object] = []

    def read() -> None:
        while not stop.is_set():
            response = bank.recall(RecallRequest(text="tea", vector=UNIT, k=100))
            keys = sorted(hit.key for hit in response.hits)
            if keys != [2 * response.position - 2, 2 * response.position - 1]:
                failures.append((response.position, keys))

    readers = [in_thread(read) for _ in range(3)]
    try:
        for position in range(2, 400):
            first = 2 * position - 2
            fresh = [row(first, f"tea even {position}"), row(first + 1, f"tea odd {position}")]
            bank.apply(position, fresh, removed=[first - 2, first - 1])
    finally:
        stop.set()
        for thread in readers:
            thread.join()
    assert failures == []


def any_value() -> st.SearchStrategy[object]:
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(st.characters(), max_size=8),
        st.binary(max_size=40),
        st.just("\ud800"),
        st.just(UNIT),
        st.just(bytes(16)),
    )
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


FIELDS = (
    *("text", "vector", "k", "depth", "tags", "tag_match", "fact_types", "metadata", "session", "occurred", "retained"),
    *("as_of", "valid_at", "memory_ids", "time_windows", "time_tail_ms", "external", "fusion", "rank_constant"),
    *("weights", "feedback", "context_windows", "layer_weights", "dedup_threshold", "budget", "budget_whole"),
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), any_value(), max_size=6))
def test_whatever_comes_is_answered_or_refused_with_our_errors(values: dict[str, object]) -> None:
    bank = Core().bank(DIMENSIONS)
    bank.apply(1, [row(number, f"tea {number}") for number in range(3)])
    try:
        with core.translated_errors():
            request = RecallRequest(**values)  # type: ignore[arg-type]
        response = bank.recall(request)
    except AstrocyteError as refused:
        assert isinstance(refused, ValidationError)  # noqa: PT017
    else:
        assert all(-1e300 < hit.score < 1e300 for hit in response.hits)


def texts_of_words() -> Iterator[str]:
    rng = random.Random(7)
    words = ["tea", "harbour", "violin", "granite", "lantern", "meadow"]
    while True:
        yield " ".join(rng.choices(words, k=6))


def test_the_same_rows_give_the_same_answer_whatever_came_before() -> None:
    texts = list(itertools.islice(texts_of_words(), 60))
    fresh, used = Core().bank(DIMENSIONS), Core().bank(DIMENSIONS)
    fresh.apply(1, [row(number, texts[number]) for number in range(30, 60)])
    for number, text in enumerate(texts):
        used.apply(number + 1, [row(number, text)])
    used.apply(100, removed=list(range(30)))
    for query in ("tea", "granite lantern", "violin violin meadow"):
        expected, got = (bank.recall(RecallRequest(text=query)).hits for bank in (fresh, used))
        assert [hit.key for hit in got] == [hit.key for hit in expected]
        assert [hit.arms for hit in got] == [hit.arms for hit in expected]
        assert [hit.score for hit in got] == [hit.score for hit in expected]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("caf\u00e9 au lait", "cafe\u0301  au\nlait ", True),
        ("the password is Hunter2", "the password is hunter2", False),
        ("10\u00b2 metres", "102 metres", False),
    ],
)
def test_content_hashes(left: str, right: str, same: bool) -> None:
    assert len(content_hash(left)) == 16
    assert (content_hash(left) == content_hash(right)) is same


def test_tokens_are_counted_as_cl100k_base() -> None:
    texts = ["", "hello world", "tiktoken is great!", "Привет, мир! 猫が好きです", "<|endoftext|>"]
    assert core.count_tokens_many(texts) == [0, 2, 6, 14, 7]
    assert [count_tokens(text) for text in texts] == [0, 2, 6, 14, 7]


def test_vectors_to_bytes_and_back() -> None:
    values = [0.5, -2.0, 0.0]
    assert list(vector_values(vector_bytes(values))) == values
    assert vector_bytes([1.0]) == b"\x00\x00\x80\x3f"
    for bad in ([1e39], ["x"], [None]):
        with pytest.raises(ValidationError, match="32-bit"):
            vector_bytes(bad)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="4 bytes"):
        vector_values(b"abc")


def test_the_build_says_what_it_is() -> None:
    info = core.build_info()
    assert info["token_table"] == "cl100k_base"
    assert info["profile"] in {"release", "debug"}
    assert info["simd"]
