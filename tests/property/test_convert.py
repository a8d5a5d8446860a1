"""Everything that crosses the wire comes back as it was, through the bytes."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from astrocyte.model import (
    AccessCheck,
    AuditPage,
    Bank,
    BankStats,
    BankTemplate,
    Change,
    EngineInfo,
    ExplainQuery,
    ExplainResult,
    ForgetResult,
    ForgetSelector,
    Grant,
    HistoryResult,
    Hold,
    KeyInfo,
    Memory,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
    ServerInfo,
)
from astrocyte.services import convert
from astrocyte.v1 import memory_pb2

M = TypeVar("M", bound=Message)


def sent(message: M) -> M:
    return type(message).FromString(message.SerializeToString())


@given(strategies.items)
def test_item(item: RetainItem) -> None:
    back = convert.decode_item(sent(convert.encode_item(item)))
    assert back == item
    assert strategies.same(dict(back.metadata), dict(item.metadata))


@given(strategies.items)
def test_item_as_a_request_of_its_own(item: RetainItem) -> None:
    request = sent(convert.encode_retain_request("bank", item, "request", validate_only=True))
    assert convert.decode_item(request) == item
    assert (request.bank_id, request.request_id, request.validate_only) == ("bank", "request", True)


@given(strategies.retain_results)
def test_retain_result(result: RetainResult) -> None:
    assert convert.decode_retain_result(sent(convert.encode_retain_result(result))) == result


@given(strategies.memories)
def test_memory(memory: Memory) -> None:
    assert convert.decode_memory(sent(convert.encode_memory(memory))) == memory


@given(strategies.updates)
def test_update(update: MemoryUpdate) -> None:
    request = sent(convert.encode_update_request("bank", update, None, validate_only=False))
    assert convert.decode_update(request) == update
    assert request.bank_id == "bank"


@given(strategies.queries)
def test_query(query: RecallQuery) -> None:
    back = convert.decode_query(sent(convert.encode_query(query)))
    assert back == query
    assert strategies.same(dict(back.metadata), dict(query.metadata))


@given(strategies.queries, strategies.tags, strategies.positions)
def test_explain_query(query: RecallQuery, memory_ids: tuple[str, ...], position: int) -> None:
    asked = ExplainQuery(query, memory_ids, position)
    assert convert.decode_explain_request(sent(convert.encode_explain_request(asked))) == asked


@settings(max_examples=50)
@given(strategies.explain_results)
def test_explain_result(result: ExplainResult) -> None:
    assert convert.decode_explain_result(sent(convert.encode_explain_result(result))) == result


@settings(max_examples=50)
@given(strategies.recall_results)
def test_recall_result(result: RecallResult) -> None:
    assert (
        convert.decode_recall_result(memory_pb2.RecallResponse.FromString(convert.encode_recall_result(result)))
        == result
    )


@settings(max_examples=50)
@given(st.lists(strategies.recall_results, max_size=3))
def test_recall_results(results: list[RecallResult]) -> None:
    """Long answers too: their length takes more than one byte."""
    batch = memory_pb2.BatchRecallResponse.FromString(convert.encode_recall_results(results))
    assert [convert.decode_recall_result(message) for message in batch.results] == results


@given(strategies.instants, strategies.names)
def test_history_query(as_of: Any, name: str) -> None:
    query = RecallQuery(name, "bank", max_results=3, max_tokens=100, tags=(name,), as_of=as_of)
    assert convert.decode_history_query(sent(convert.encode_history_request(query))) == query


@settings(max_examples=50)
@given(strategies.history_results)
def test_history_result(result: HistoryResult) -> None:
    assert (
        convert.decode_history_result(memory_pb2.HistoryResponse.FromString(convert.encode_history_result(result)))
        == result
    )


@given(strategies.selectors)
def test_selector(selector: ForgetSelector) -> None:
    request = sent(
        convert.encode_forget_request(
            "bank", selector, compliance=True, reason="why", dry_run=True, request_id="request"
        )
    )
    assert convert.decode_selector(request) == selector
    assert (request.compliance, request.reason, request.dry_run, request.request_id) == (True, "why", True, "request")


@given(strategies.forget_results)
def test_forget_result(result: ForgetResult) -> None:
    assert convert.decode_forget_result(sent(convert.encode_forget_result(result))) == result


@given(strategies.changes)
def test_change(change: Change) -> None:
    assert convert.decode_change(sent(convert.encode_change(change))) == change


@given(strategies.banks)
def test_bank(bank: Bank) -> None:
    assert convert.decode_bank(sent(convert.encode_bank(bank))) == bank


@given(strategies.bank_stats)
def test_bank_stats(stats: BankStats) -> None:
    assert convert.decode_bank_stats(sent(convert.encode_bank_stats(stats))) == stats


@given(strategies.server_infos)
def test_server_info(info: ServerInfo) -> None:
    assert convert.decode_server_info(sent(convert.encode_server_info(info))) == info


@given(strategies.holds)
def test_hold(hold: Hold) -> None:
    assert convert.decode_hold(sent(convert.encode_hold(hold))) == hold


@given(strategies.audit_pages)
def test_audit_page(page: AuditPage) -> None:
    assert convert.decode_audit_page(sent(convert.encode_audit_page(page))) == page


@given(strategies.grants)
def test_grant(grant: Grant) -> None:
    assert convert.decode_grant(sent(convert.encode_grant(grant))) == grant


@given(strategies.access_checks)
def test_access_check(check: AccessCheck) -> None:
    assert convert.decode_access_check(sent(convert.encode_access_check(check))) == check


@given(strategies.bank_templates)
def test_bank_template(template: BankTemplate) -> None:
    assert convert.decode_bank_template(sent(convert.encode_bank_template(template))) == template


@given(strategies.engine_infos)
def test_engine(engine: EngineInfo) -> None:
    assert convert.decode_engine(sent(convert.encode_engine(engine))) == engine


@given(strategies.key_infos)
def test_api_key(key: KeyInfo) -> None:
    assert convert.decode_api_key(sent(convert.encode_api_key(key))) == key


@given(strategies.reflect_queries)
def test_reflect_query(query: ReflectQuery) -> None:
    assert convert.decode_reflect_query(sent(convert.encode_reflect_query(query))) == query


@given(strategies.reflect_results)
def test_reflect_result(result: ReflectResult) -> None:
    message = sent(convert.encode_reflect_result(result))
    assert convert.decode_reflect_result(message, include_sources=True) == result
    assert convert.decode_reflect_result(message, include_sources=False).sources is None
