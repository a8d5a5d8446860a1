"""Everything that crosses the wire comes back as it was, through the bytes."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from astrocyte.api import RPCS, Rpc, requests
from astrocyte.model import (
    ExplainQuery,
    ExplainResult,
    ForgetSelector,
    HistoryResult,
    Memory,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
)
from astrocyte.policy.requests.pages import largest_size
from astrocyte.policy.requests.request_keys import plain
from astrocyte.services.convert import Codec, codec_of, codec_of_rpc, descriptor_of
from astrocyte.v1 import admin_pb2, knowledge_pb2, memory_pb2, types_pb2
from harness.calls import request_of
from samples import strategies

M = TypeVar("M", bound=Message)
# Tag and length of a message within another.
FRAME_BYTES = 6


def sent(message: M) -> M:
    return type(message).FromString(message.SerializeToString())


def crossed(value: Any, kind: type[Any]) -> Any:
    """A value that went over the wire as a message of a class, and came back."""
    codec: Codec[Any] = codec_of(type(value), kind)  # type: ignore[arg-type]  # classes
    return codec.decode(sent(codec.encode(value)))


def asked(request: Any) -> Any:
    """A request that went over the wire, and came back."""
    codec = codec_of_rpc(RPCS[type(request)])
    return codec.decode_request(sent(codec.encode_request(request)))


def answered(request: Any, response: Any) -> Any:
    """The response to a request, that went over the wire."""
    rpc = RPCS[type(request)]
    codec = codec_of_rpc(rpc)
    message = codec.encode_response(response)
    raw = message if isinstance(message, bytes) else message.SerializeToString()
    return codec.decode_response(GetMessageClass(descriptor_of(rpc).output_type).FromString(raw), request)


@given(strategies.items)
def test_item(item: RetainItem) -> None:
    back = crossed(item, memory_pb2.RetainItem)
    assert back == item
    assert strategies.same(dict(back.metadata), dict(item.metadata))


@given(strategies.items)
def test_item_as_a_request_of_its_own(item: RetainItem) -> None:
    request = requests.Retain("bank", item, "request", validate_only=True)
    assert asked(request) == request


@given(st.lists(strategies.items, max_size=3))
def test_items(items: list[RetainItem]) -> None:
    request = requests.BatchRetain("bank", items, None, validate_only=True)
    assert asked(request) == request


@given(strategies.retain_results)
def test_retain_result(result: RetainResult) -> None:
    assert crossed(result, memory_pb2.RetainResponse) == result


@given(strategies.memories)
def test_memory(memory: Memory) -> None:
    assert crossed(memory, types_pb2.Memory) == memory


@given(strategies.updates)
def test_update(update: MemoryUpdate) -> None:
    request = requests.UpdateMemory("bank", update, None, validate_only=True)
    assert asked(request) == request


@given(strategies.queries)
def test_query(query: RecallQuery) -> None:
    back = asked(requests.Recall(query)).query
    assert back == query
    assert strategies.same(dict(back.metadata), dict(query.metadata))


@given(strategies.queries, strategies.tags, strategies.positions)
def test_explain_query(query: RecallQuery, memory_ids: tuple[str, ...], position: int) -> None:
    request = requests.Explain(ExplainQuery(query, memory_ids, position))
    assert asked(request) == request


@settings(max_examples=50)
@given(strategies.explain_results)
def test_explain_result(result: ExplainResult) -> None:
    assert crossed(result, memory_pb2.ExplainResponse) == result


@settings(max_examples=50)
@given(strategies.recall_results)
def test_recall_result(result: RecallResult) -> None:
    assert answered(requests.Recall(RecallQuery("")), result) == result


@settings(max_examples=50)
@given(st.lists(strategies.recall_results, max_size=3))
def test_recall_results(results: list[RecallResult]) -> None:
    """Long answers too: their length takes more than one byte."""
    request = requests.BatchRecall([RecallQuery("")] * len(results))
    assert answered(request, results) == results


@given(strategies.instants, strategies.names)
def test_history_query(as_of: Any, name: str) -> None:
    request = requests.History(RecallQuery(name, "bank", max_results=3, max_tokens=100, tags=(name,), as_of=as_of))
    assert asked(request) == request


@settings(max_examples=50)
@given(strategies.history_results)
def test_history_result(result: HistoryResult) -> None:
    assert answered(requests.History(RecallQuery("")), result) == result


@given(strategies.selectors)
def test_selector(selector: ForgetSelector) -> None:
    request = requests.Forget("bank", selector, compliance=True, reason="why", dry_run=True, request_id="request")
    assert asked(request) == request


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (strategies.forget_results, memory_pb2.ForgetResponse),
        (strategies.changes, memory_pb2.Change),
        (strategies.banks, admin_pb2.Bank),
        (strategies.bank_stats, admin_pb2.BankStats),
        (strategies.server_infos, admin_pb2.ServerInfo),
        (strategies.holds, admin_pb2.Hold),
        (strategies.audit_pages, admin_pb2.ListAuditEventsResponse),
        (strategies.grants, admin_pb2.AccessGrant),
        (strategies.access_checks, admin_pb2.CheckAccessResponse),
        (strategies.bank_templates, admin_pb2.BankTemplate),
        (strategies.engine_infos, admin_pb2.EngineInfo),
        (strategies.source_infos, admin_pb2.SourceInfo),
        (strategies.key_infos, admin_pb2.ApiKey),
        (strategies.directives, types_pb2.Directive),
        (strategies.observations, knowledge_pb2.Observation),
        (strategies.mental_models, knowledge_pb2.MentalModel),
        (strategies.delta_operations, knowledge_pb2.DeltaOperation),
        (strategies.model_updates, knowledge_pb2.UpdateMentalModelResponse),
        (strategies.knowledge_revisions, knowledge_pb2.KnowledgeRevision),
        (strategies.revision_diffs, knowledge_pb2.DiffMentalModelRevisionsResponse),
        (strategies.wiki_pages, knowledge_pb2.WikiPage),
        (strategies.diagnoses, knowledge_pb2.DiagnoseBankResponse),
        (strategies.audit_results, knowledge_pb2.AuditCoverageResponse),
        (strategies.page_hits, knowledge_pb2.PageHit),
        (strategies.page_findings, knowledge_pb2.LintPagesResponse),
        (strategies.compile_results, knowledge_pb2.CompileBankResponse),
    ],
)
def test_value(strategy: st.SearchStrategy[Any], message: type[Any]) -> None:
    @given(strategy)
    def crosses(value: Any) -> None:
        assert crossed(value, message) == value

    crosses()


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (strategies.memories, types_pb2.Memory),
        (strategies.banks, admin_pb2.Bank),
        (strategies.holds, admin_pb2.Hold),
        (strategies.audit_pages, admin_pb2.ListAuditEventsResponse),
        (strategies.grants, admin_pb2.AccessGrant),
        (strategies.directives, types_pb2.Directive),
        (strategies.observations, knowledge_pb2.Observation),
        (strategies.mental_models, knowledge_pb2.MentalModel),
        (strategies.knowledge_revisions, knowledge_pb2.KnowledgeRevision),
        (strategies.wiki_pages, knowledge_pb2.WikiPage),
    ],
)
def test_no_entry_of_a_page_is_larger_than_counted(strategy: st.SearchStrategy[Any], message: type[Any]) -> None:
    @given(strategy)
    def fits(value: Any) -> None:
        codec: Codec[Any] = codec_of(type(value), message)  # type: ignore[arg-type]  # classes
        assert codec.encode(value).ByteSize() + FRAME_BYTES <= largest_size(value)

    fits()


@given(strategies.reflect_queries)
def test_reflect_query(query: ReflectQuery) -> None:
    for request in (requests.Reflect(query), requests.StreamReflect(query)):
        assert asked(request) == request


@given(strategies.reflect_results)
def test_reflect_result(result: ReflectResult) -> None:
    for kind in (requests.Reflect, requests.StreamReflect):
        assert answered(kind(ReflectQuery("", include_sources=True)), result) == result
        assert answered(kind(ReflectQuery("", include_sources=False)), result).sources is None


@given(st.text())
def test_piece_of_a_reflect(text: str) -> None:
    assert answered(requests.StreamReflect(ReflectQuery("")), text) == text


@pytest.mark.parametrize("rpc", [rpc for rpc in RPCS.values() if not rpc.client_streaming], ids=lambda rpc: rpc.name)
def test_request_of_every_rpc(rpc: Rpc) -> None:
    request = request_of(rpc, "bank", "memory")
    assert plain(asked(request)) == plain(request)
