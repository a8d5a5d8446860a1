"""Between wire and domain: how several banks are asked, and what became of each."""

from __future__ import annotations

from astrocyte.errors import ValidationError
from astrocyte.model import BankGroup, BankOutcome, BankTrace, FusionMethod, MultiBankMode, MultiBankStrategy
from astrocyte.services.convert.values import Choices, Reader, Refused, read, same
from astrocyte.v1 import admin_pb2, memory_pb2, types_pb2

FUSION_METHODS = Choices("fusion_method", FusionMethod, memory_pb2.FusionMethod, "FUSION_METHOD_")
MODES = Choices("mode", MultiBankMode, memory_pb2.MultiBankMode, "MULTI_BANK_MODE_")
OUTCOMES = Choices("outcome", BankOutcome, types_pb2.BankOutcome, "BANK_OUTCOME_")

STRATEGY_READERS: dict[str, Reader] = {
    "mode": MODES.decode,
    "min_results_to_stop": same,
    "min_score_to_stop": same,
    "cascade_order": tuple,
    "bank_weights": dict,
    "dedup_across_banks": same,
    "fusion_method": FUSION_METHODS.decode,
    "require_all": same,
}


def decode_strategy(message: memory_pb2.MultiBankStrategy) -> MultiBankStrategy:
    """How several banks shall be asked."""
    try:
        return MultiBankStrategy(**read(message, STRATEGY_READERS, "."))
    except ValidationError as error:
        raise Refused(error.field or "", error.description) from error


def encode_strategy(strategy: MultiBankStrategy | None) -> memory_pb2.MultiBankStrategy | None:
    """A strategy for a request."""
    if strategy is None:
        return None
    return memory_pb2.MultiBankStrategy(
        mode=MODES.encode(strategy.mode),
        min_results_to_stop=strategy.min_results_to_stop,
        min_score_to_stop=strategy.min_score_to_stop,
        cascade_order=strategy.cascade_order,
        bank_weights=strategy.bank_weights,
        dedup_across_banks=strategy.dedup_across_banks,
        fusion_method=FUSION_METHODS.encode(strategy.fusion_method),
        require_all=strategy.require_all,
    )


def decode_bank_group(message: admin_pb2.BankGroup) -> BankGroup:
    """A group of banks."""
    return BankGroup(message.name, tuple(message.banks), decode_strategy(message.strategy))


def encode_bank_group(group: BankGroup) -> admin_pb2.BankGroup:
    """A group of banks."""
    return admin_pb2.BankGroup(name=group.name, banks=group.banks, strategy=encode_strategy(group.strategy))


def decode_bank_trace(message: types_pb2.BankTrace) -> BankTrace:
    """What became of a bank."""
    return BankTrace(
        bank_id=message.bank_id,
        outcome=OUTCOMES.decode(message.outcome),
        weight=message.weight,
        found=message.found,
        kept=message.kept,
        tokens=message.tokens,
        token_budget=message.token_budget,
        position=message.position,
        reason=message.reason,
    )


def set_bank_trace(message: types_pb2.BankTrace, trace: BankTrace) -> None:
    """Fill the trace of a bank."""
    message.bank_id = trace.bank_id
    message.outcome = OUTCOMES.encode(trace.outcome)
    message.weight = trace.weight
    message.found = trace.found
    message.kept = trace.kept
    message.tokens = trace.tokens
    message.token_budget = trace.token_budget
    message.position = trace.position
    message.reason = trace.reason
