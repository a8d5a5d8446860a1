from __future__ import annotations

from typing import Any, cast

import pytest

from astrocyte.config import MultiBankSettings, Settings
from astrocyte.errors import ConfigError, ValidationError
from astrocyte.model import BankStrategy, Caller, FusionMethod, MultiBankMode, MultiBankStrategy, RecallQuery
from astrocyte.policy.banks.selection import BankSet, BankSets

ANN = Caller("acme", "user:ann")
GROUP = {
    "banks": ["user-{user_id}", "team-support", "org-policies"],
    "strategy": "cascade",
    "cascade_order": ["team-support"],
    "bank_weights": {"user-{user_id}": 2.0, "team-support": 1.5},
    "min_results_to_stop": 5,
}


def sets(**settings: Any) -> BankSets:
    return BankSets(MultiBankSettings(**{"bank_groups": {"support": GROUP}, **settings}))


def ask(**values: Any) -> RecallQuery:
    return RecallQuery("what?", **values)


def resolved(query: RecallQuery) -> tuple[tuple[str, ...], BankStrategy]:
    chosen = sets().resolve(ANN, query)
    assert chosen.strategy is not None
    return chosen.bank_ids, chosen.strategy


def refused(query: RecallQuery, caller: Caller = ANN, **settings: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        sets(**settings).resolve(caller, query)
    return str(raised.value.field)


def test_banks_without_a_strategy_are_asked_as_the_configuration_says() -> None:
    chosen = sets(default_strategy="first_match", fusion_method="rrf").resolve(ANN, ask(banks=("b", "a")))
    assert chosen.bank_ids == ("b", "a")
    assert chosen.strategy == BankStrategy(MultiBankMode.FIRST_MATCH, fusion_method=FusionMethod.RRF)


def test_a_group_is_filled_from_who_calls() -> None:
    bank_ids, strategy = resolved(ask(bank_group="support"))
    assert bank_ids == ("team-support", "user-ann", "org-policies")
    assert strategy.mode is MultiBankMode.CASCADE
    assert strategy.min_results_to_stop == 5
    assert strategy.bank_weights == {"user-ann": 2.0, "team-support": 1.5}


def test_a_group_is_filled_from_whom_the_call_is_made_for() -> None:
    bot = Caller("acme", "agent:bot", on_behalf_of="user:eve")
    assert "user-eve" in sets().resolve(bot, ask(bank_group="support")).bank_ids


def test_what_the_call_says_wins_over_the_group_and_the_rest_stays() -> None:
    own = MultiBankStrategy("parallel", None, bank_weights={"user-ann": 3.0}, cascade_order=[])
    bank_ids, strategy = resolved(ask(bank_group="support", strategy=own))
    assert bank_ids == ("user-ann", "team-support", "org-policies")
    assert strategy.mode is MultiBankMode.PARALLEL
    assert strategy.bank_weights == {"user-ann": 3.0}
    assert strategy.min_results_to_stop == 5


def test_one_bank_has_no_strategy() -> None:
    assert sets().resolve(ANN, ask(bank_id="a")) == BankSet(("a",))


@pytest.mark.parametrize("caller", [Caller("acme", "agent:bot"), Caller("acme", "ann"), Caller("acme", "user:")])
def test_a_caller_without_the_identity_that_a_group_needs_is_told_which(caller: Caller) -> None:
    assert refused(ask(bank_group="support"), caller) == "bank_group"


def test_an_identity_that_makes_no_bank_id_is_refused() -> None:
    assert refused(ask(bank_group="support"), Caller("acme", "user:a/../b")) == "banks[0]"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (ask(), "bank_id"),
        (ask(bank_id="a b"), "bank_id"),
        (ask(bank_id="a", banks=("b",)), "bank_id"),
        (ask(bank_id="a", bank_group="support"), "bank_id"),
        (ask(banks=("a",), bank_group="support"), "bank_group"),
        (ask(bank_id="a", strategy=MultiBankStrategy()), "strategy"),
        (ask(banks=("a", "b"), min_position=3), "min_position"),
        (ask(banks=("a",), strategy=MultiBankStrategy("widest")), "strategy.mode"),
        (ask(banks=("a",), strategy={"mode": "cascade"}), "strategy"),
        (ask(bank_group=["support"]), "bank_group"),
        (ask(banks=("a",), strategy=MultiBankStrategy(require_all=cast(bool, "yes"))), "strategy.require_all"),
        (ask(bank_group="suport"), "bank_group"),
        (ask(banks=("a", "b", "a")), "banks[2]"),
        (ask(banks=("a", "b c")), "banks[1]"),
        (ask(banks=("a", cast(str, 3))), "banks[1]"),
        (ask(banks=("a", cast(str, ["b"]))), "banks[1]"),
        (ask(banks=tuple(f"b{n}" for n in range(5))), "banks"),
        (ask(banks=("a",), strategy=MultiBankStrategy(min_results_to_stop=0)), "strategy.min_results_to_stop"),
        (ask(banks=("a",), strategy=MultiBankStrategy(bank_weights={"b": 1.0})), "strategy.bank_weights"),
        (ask(banks=("a",), strategy=MultiBankStrategy(bank_weights={"a": -1.0})), "strategy.bank_weights[a]"),
        (ask(banks=("a",), strategy=MultiBankStrategy(bank_weights={"a": 0.0})), "strategy.bank_weights"),
        (ask(banks=("a", "b"), strategy=MultiBankStrategy(cascade_order=("c",))), "strategy.cascade_order"),
        (ask(banks=("a", "b"), strategy=MultiBankStrategy(cascade_order=("b", "b"))), "strategy.cascade_order"),
        (ask(banks=("a",), strategy=MultiBankStrategy(min_score_to_stop=1.0)), "strategy.min_score_to_stop"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_field(query: RecallQuery, field: str) -> None:
    assert refused(query, most_banks=4) == field


@pytest.mark.parametrize(
    "group",
    [
        {"banks": []},
        {"banks": ["user-{user}"]},
        {"banks": ["user-{user_id!r}"]},
        {"banks": ["user-{user_id"]},
        {"banks": ["a"], "cascade_order": ["b"]},
        {"banks": ["a"], "bank_weights": {"b": 1.0}},
        {"banks": ["a"], "weights": {"a": 1.0}},
    ],
)
def test_a_group_that_makes_no_sense_is_refused_when_it_is_read(group: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="bank_groups"):
        Settings.from_mapping({"multi_bank": {"bank_groups": {"support": group}}})
