"""Switch off each guard of an invariant in turn, and require that its test fails.

python tests/guards.py --list
python tests/guards.py                      all of them
python tests/guards.py hidden-rows pages    those named

Each run works on a copy of the package in a temporary directory, in which the text of one guard is replaced. A guard
whose text is no longer in its file is an error, so that this list follows the code.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python"
# A test run that does not end is a failure of its own kind.
TIMEOUT_SECONDS = 300
# pytest: tests ran, and some failed.
TESTS_FAILED = 1


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard, the text that switches it off, and the tests that must fail then.

    Attributes:
        name: Short and unique.
        file: Below `python/astrocyte`.
        on: The text of the guard; stands in the file once.
        off: Its replacement.
        tests: Arguments of pytest.
        slow: Whether the tests start processes, and so stay out of the quick run.
    """

    name: str
    file: str
    on: str
    off: str
    tests: tuple[str, ...]
    slow: bool = False


GUARDS: Sequence[Guard] = (
    Guard(
        "late-heads",
        "gateway/protocol.py",
        "        self._timer = self.loop.call_later(self.head_seconds, self._late)",
        "        self._timer = self.loop.call_later(3_600, self._late)",
        ("tests/integration/gateway/test_gateway_limits.py", "-k", "cut_off"),
    ),
    Guard(
        "half-open-handshakes",
        "gateway/listener.py",
        "        bound_handshakes(config, gateway)",
        "        del gateway",
        ("tests/integration/gateway/test_gateway_handshakes.py",),
        slow=True,
    ),
    Guard(
        "late-heads-of-agents",
        "mcp/http.py",
        "        http=limited(mcp),",
        '        http="httptools",',
        ("tests/integration/test_mcp_limits.py",),
        slow=True,
    ),
    Guard(
        "calls-begin-with-others-commits",
        "policy/gate.py",
        "        self._refresh = parts.store.refresh if parts.store.shared else _nothing",
        "        self._refresh = _nothing",
        ("tests/unit/pipelines/test_sharing.py",),
    ),
    Guard(
        "indexes-wait-for-others-commits",
        "pipelines/index/registry.py",
        "        return None if index is not None and index.core.position < slot.wanted else index",
        "        return index",
        ("tests/unit/pipelines/test_sharing.py",),
    ),
    Guard(
        "statistics-wait-for-others-commits",
        "policy/operations/administration.py",
        "        index = await self._registry.refreshed(bank)",
        "        index = self._registry.peek(bank)",
        ("tests/unit/pipelines/test_sharing.py",),
    ),
    Guard(
        "own-commits-behind-others",
        "pipelines/index/registry.py",
        "                elif batch.after > slot.index.core.position:",
        "                elif batch.after < 0:",
        ("tests/unit/pipelines/test_sharing.py",),
    ),
    Guard(
        "erasures-in-other-processes",
        "pipelines/forget.py",
        "            await self._confirm(bank.key)",
        "            del position",
        ("tests/unit/pipelines/test_sharing.py",),
    ),
    Guard(
        "fenced-background-writes",
        "stores/sqlite/engine/sharing.py",
        "    if number != fence.number:",
        "    if number is None:",
        ("tests/unit/stores/test_sharing.py",),
    ),
    Guard(
        "processes-that-missed-something",
        "stores/sqlite/engine/sharing.py",
        "bool(rows and rows[0][0] > self.heard + 1)",
        "False",
        ("tests/unit/stores/test_sharing.py",),
    ),
    Guard(
        "erasures-of-processes-take-turns",
        "stores/sqlite/deletion/erasure.py",
        "            while sharing is not None and not sharing.erasing.taken():",
        "            while sharing is None and not self._busy:",
        ("tests/unit/stores/test_sharing.py",),
    ),
    Guard(
        "bank-of-graphs",
        "stores/sqlite/graph/reader.py",
        "        if not fetch(connection, sql, (bank.key, bank.tenant, bank.bank_id)):",
        "        if connection is None:",
        ("tests/unit/stores/test_graph_reader.py",),
    ),
    Guard(
        "forgotten-in-graphs",
        "stores/sqlite/graph/visibility.py",
        '        memory = "m.forgotten_at IS NULL"',
        '        memory = "1"',
        ("tests/unit/policy/operations/test_graph.py",),
    ),
    Guard(
        "holds-on-graphs",
        "stores/sqlite/graph/caller_changes.py",
        "        holds.check_whole_bank(self._connection, self._bank)",
        "        del self",
        ("tests/unit/policy/operations/test_graph.py",),
    ),
    Guard(
        "forgotten-in-graph-stores",
        "stores/sqlite/schema/0019_graph_changes.sql",
        "WHEN (OLD.mention_count > 0) <> (NEW.mention_count > 0) AND EXISTS (",
        "WHEN 0 AND EXISTS (",
        ("tests/unit/pipelines/external_stores/test_graph_sync.py",),
    ),
    Guard(
        "gone-from-graph-stores",
        "pipelines/external_stores/graph_sync.py",
        "            await call(partial(store.delete_entities, gone, name))",
        "            del gone",
        ("tests/unit/pipelines/external_stores/test_graph_sync.py",),
    ),
    Guard(
        "erased-words-in-segments",
        "pipelines/forget.py",
        "            await self._registry.scrub(bank)\n",
        "",
        ("tests/unit/pipelines/index/test_segment_files.py",),
    ),
    Guard(
        "erasures-in-graph-stores",
        "pipelines/external_stores/sync.py",
        "        number = 0 if self._graph is None else await self._graph.last(bank)",
        "        number = 0",
        ("tests/unit/pipelines/external_stores/test_graph_sync.py",),
    ),
    Guard(
        "graph-stores-ahead",
        "pipelines/external_stores/graph_sync.py",
        "            if number > await self.last(bank):",
        "            if number < 0:",
        ("tests/unit/pipelines/external_stores/test_graph_sync.py",),
    ),
    Guard(
        "objects-of-statements",
        "pipelines/knowledge/claims.py",
        "        return self.words == other.words and same_words(self.object, other.object)",
        "        return self.words == other.words",
        ("tests/unit/pipelines/knowledge/test_statements.py",),
    ),
    Guard(
        "scopes-of-rules",
        "pipelines/knowledge/consolidation.py",
        "    if scope == BANK_SCOPE:\n        return topic\n",
        "    if scope:\n        return topic\n",
        ("tests/unit/policy/operations/knowledge/test_consolidation.py",),
    ),
    Guard(
        "scopes-of-consolidated-memories",
        "pipelines/knowledge/scopes.py",
        "        elif scope == BANK_SCOPE or scope in tags or scope in entities:",
        "        elif scope:",
        ("tests/unit/policy/operations/knowledge/test_consolidation.py",),
    ),
    Guard(
        "evidence-of-observing-models",
        "pipelines/knowledge/model_actions.py",
        "        place = next(places(passage, text, words_only=True), None)",
        "        place = (0, len(text))",
        ("tests/unit/pipelines/knowledge/test_model_actions.py",),
    ),
    Guard(
        "names-and-numbers-of-observing-models",
        "pipelines/knowledge/model_actions.py",
        "    return denies_alike and ours.facts <= theirs.words | own and words.issuperset(content_words(text))",
        "    return words.issuperset(content_words(text))",
        ("tests/unit/pipelines/knowledge/test_model_actions.py",),
    ),
    Guard(
        "words-of-observing-models",
        "pipelines/knowledge/model_actions.py",
        "    return denies_alike and ours.facts <= theirs.words | own and words.issuperset(content_words(text))",
        "    return denies_alike and ours.facts <= theirs.words | own",
        ("tests/unit/pipelines/knowledge/test_model_actions.py",),
    ),
    Guard(
        "merges-of-observing-models",
        "pipelines/knowledge/model_plan.py",
        'and not named.deleted and covers(named.body["text"], proposal.text):',
        "and not named.deleted:",
        ("tests/unit/policy/operations/knowledge/test_model_consolidation.py",),
    ),
    Guard(
        "budget-of-observing-models",
        "stores/sqlite/tables/model_budgets.py",
        " WHERE b.day < excluded.day OR (b.calls < ?4 AND b.tokens < ?5)",
        " WHERE ?4 > 0 OR ?5 > 0",
        ("tests/unit/policy/operations/knowledge/test_model_consolidation.py",),
    ),
    Guard(
        "personal-data-for-observing-models",
        "pipelines/knowledge/model_writer.py",
        "        told = self._withheld(\n            bank_id, [",
        "        told = list(\n            [",
        ("tests/unit/policy/operations/knowledge/test_model_consolidation.py",),
    ),
    Guard(
        "answers-of-observing-models-that-came-late",
        "stores/sqlite/tables/knowledge/consolidation.py",
        "    if _place(connection, bank)[:2] != (work.position, work.scopes_done):",
        "    if _place(connection, bank) is None:",
        ("tests/unit/policy/operations/knowledge/test_model_consolidation.py",),
    ),
    Guard(
        "memories-that-models-cannot-read",
        "pipelines/knowledge/model_writer.py",
        "        if work.attempts >= MOST_ATTEMPTS:",
        "        if work.attempts < 0:",
        ("tests/unit/policy/operations/knowledge/test_model_consolidation.py",),
    ),
    Guard(
        "hidden-observations-in-consolidations",
        "pipelines/knowledge/consolidation.py",
        "        more = [record for record in known if record.key not in outdated and record.is_outdated]",
        "        more = [record for record in known[:0] if record.key not in outdated]",
        ("tests/unit/policy/operations/knowledge/test_consolidation.py",),
    ),
    Guard(
        "scopes-of-knowledge",
        "stores/sqlite/tables/knowledge/rows.py",
        "    \"CASE WHEN {scope} = 'bank' THEN true\"",
        "    \"CASE WHEN {scope} <> '' THEN true\"",
        ("tests/unit/policy/operations/knowledge/test_observations.py", "tests/property/test_knowledge.py"),
    ),
    Guard(
        "hidden-sources",
        "stores/knowledge/items.py",
        "    gone = frozenset(source.memory_id for source in record.sources if source.current is None)",
        "    gone = frozenset[str]()",
        ("tests/unit/policy/operations/knowledge/test_observations.py", "tests/property/test_knowledge.py"),
    ),
    Guard(
        "personal-data-in-knowledge",
        "policy/operations/knowledge/items.py",
        "        told = self.parts.policies.barriers.told(bank_id, texts)",
        "        told = texts",
        ("tests/unit/policy/operations/knowledge/test_shown_knowledge.py",),
    ),
    Guard(
        "erased-knowledge",
        "stores/sqlite/tables/knowledge/rows.py",
        "    gone = frozenset(memory_ids)\n",
        "    gone = frozenset[str]()\n",
        ("tests/unit/stores/test_consolidation_erasing.py", "tests/unit/stores/test_knowledge_erasing.py"),
    ),
    Guard(
        "superseders",
        "stores/sqlite/tables/knowledge/rows.py",
        "    return found if hidden else _holding(connection, found)",
        "    return found",
        ("tests/unit/policy/operations/knowledge/test_consolidation.py",),
    ),
    Guard(
        "holds-on-knowledge",
        "stores/sqlite/tables/knowledge/changes.py",
        "        holds.check_memories(connection, bank, [*sources, record.item_id])",
        "        del sources",
        (
            "tests/unit/policy/operations/knowledge/test_observations.py",
            "tests/unit/policy/operations/knowledge/test_directives.py",
        ),
    ),
    Guard(
        "authors-of-directives",
        "policy/operations/knowledge/directives.py",
        "            if not any(matches(pattern, principal) for pattern in self._settings.allowed_principals):",
        "            if principal is None:",
        ("tests/unit/policy/operations/knowledge/test_directives.py",),
    ),
    Guard(
        "holds-on-lifecycles",
        "stores/sqlite/lifecycle.py",
        "        if row[-1]:\n            held += 1",
        "        if held < 0:\n            held += 1",
        ("tests/unit/policy/operations/test_lifecycle.py",),
    ),
    Guard(
        "exempt-from-ages",
        "pipelines/lifecycle/rules.py",
        "        if not exempt.isdisjoint(memory.tags):",
        "        if not exempt.isdisjoint(()):",
        ("tests/unit/policy/operations/test_lifecycle.py",),
    ),
    Guard(
        "vectors-of-callers",
        "pipelines/retain/dedup_decisions.py",
        "        return asked or (self._dedup.enabled and item.embedding is None)",
        "        return asked or self._dedup.enabled",
        ("tests/unit/pipelines/retain/test_retain.py",),
    ),
    Guard(
        "exempt-from-merges",
        "pipelines/lifecycle/duplicates.py",
        "    return not any(tag in exempt for tag in record.memory.tags)",
        "    return record is not None",
        ("tests/unit/policy/operations/test_duplicates.py",),
    ),
    Guard(
        "evidence-of-readings",
        "pipelines/graph/llm/extraction.py",
        "        if any(start <= first and last <= end for first, last in named):",
        "        if start >= 0:",
        ("tests/unit/pipelines/graph/llm/test_extraction.py",),
    ),
    Guard(
        "readings-in-rebuilds",
        "stores/sqlite/graph/derived_rows.py",
        "if (one.row_key, one.bank_key, one.revision) in standing]",
        "if any((one.row_key, one.bank_key) == row[:2] for row in standing)]",
        ("tests/unit/pipelines/graph/llm/test_reader.py",),
    ),
    Guard(
        "forgotten-in-readings",
        "stores/sqlite/schema/0020_graph_readings.sql",
        "    UPDATE graph_readings SET waiting = NULL WHERE row_key = NEW.row_key AND waiting = 1;",
        "    SELECT NEW.row_key;",
        ("tests/unit/pipelines/graph/llm/test_reader.py",),
    ),
    Guard(
        "budget-of-readings",
        "pipelines/graph/llm/reader.py",
        "            if await self._readings.reserve(source, day, own.calls_per_day, own.tokens_per_day):",
        "            if day:",
        ("tests/unit/pipelines/graph/llm/test_reader.py",),
    ),
    Guard(
        "readings-leave-as-allowed",
        "pipelines/graph/llm/reader.py",
        '        shown, speaker = self._withheld(source.bank_id, [source.content, source.speaker or ""])',
        '        shown, speaker = source.content, source.speaker or ""',
        ("tests/unit/pipelines/graph/llm/test_reader.py",),
    ),
    Guard(
        "hidden-rows",
        "stores/sqlite/hydration.py",
        '    " AND m.forgotten_at IS NULL"\n)\n_NOW',
        '    ""\n)\n_NOW',
        ("tests/unit/test_invariants.py",),
    ),
    Guard(
        "bank-of-rows",
        "stores/sqlite/hydration.py",
        "WHERE b.bank_key = ?2 AND b.tenant = ?3 AND b.bank_id = ?4",
        "WHERE b.bank_key = ?2 OR ?3 = ?4",
        ("tests/contracts/test_store_reads.py",),
    ),
    Guard(
        "filters-of-rows",
        "pipelines/recall/result_assembly.py",
        "    return rows if meets is None else [row for row in rows if meets(row)]",
        "    return rows if meets is None else rows",
        ("tests/unit/test_invariants.py",),
    ),
    Guard(
        "permissions-of-reads",
        "api/rpcs.py",
        "    yield _memory(requests.GetMemory, READ, read)",
        "    yield _memory(requests.GetMemory, NO_PERMISSIONS, read)",
        ("tests/unit/policy/test_permissions.py",),
    ),
    Guard(
        "access",
        "policy/auth/access_control.py",
        "                if answer is not None and needed <= answer:",
        "                if answer is not None:",
        ("tests/unit/policy/auth/test_access_control.py",),
    ),
    Guard(
        "on-behalf-of",
        "policy/auth/access_control.py",
        "self._require(caller.tenant, caller.on_behalf_of, operation, bank_id, known, making=False)",
        "pass",
        ("tests/unit/policy/auth/test_access_control.py",),
    ),
    Guard(
        "digest-of-keys",
        "policy/auth/api_keys.py",
        "if live is None or not hmac.compare_digest(live.digest, digest):",
        "if live is None:",
        ("tests/unit/policy/auth/test_api_keys.py",),
    ),
    Guard(
        "legal-holds",
        "stores/sqlite/tables/holds.py",
        "    if holding:\n        raise LegalHoldActive(bank.bank_id, holding)\n\n\ndef check_queue",
        "\n\ndef check_queue",
        ("tests/unit/policy/governance/test_legal_holds.py",),
    ),
    Guard(
        "request-ids",
        "stores/sqlite/tables/idempotency.py",
        "    return matching(fetch(connection, FIND, (tenant, request.request_id)), request)",
        "    return None",
        ("tests/contracts/test_store_requests.py",),
    ),
    Guard(
        "other-requests",
        "stores/sqlite/tables/idempotency.py",
        "    if operation != request.operation or fingerprint not in (None, request.fingerprint):",
        "    if operation != request.operation:",
        ("tests/contracts/test_store_requests.py",),
    ),
    Guard(
        "kept-answers",
        "pipelines/recall/cache.py",
        '    return blake2b(f"{most_tokens} {mark} {query!r}".encode',
        '    return blake2b(f"{query.query}".encode',
        ("tests/unit/pipelines/recall", "tests/property/test_recall_cache.py"),
    ),
    Guard(
        "token-buckets",
        "policy/limits/token_bucket.py",
        "        return min(full, level + (now - at) * draw.per_minute)",
        "        return level + (now - at) * draw.per_minute",
        ("tests/unit/policy/limits/test_token_bucket.py",),
    ),
    Guard(
        "circuit-breaker",
        "providers/circuit_breaker.py",
        "        if self.state is State.HALF_OPEN or self._failures >= self._threshold:",
        "        if self._failures >= self._threshold:",
        ("tests/unit/providers/test_circuit_breaker.py",),
    ),
    Guard(
        "prompt-fence",
        "pipelines/text/prompt_fence.py",
        '    return NUMBERED.sub(r"(\\1)", BREAKS.sub(" ", text).strip()).translate(ANGLES)',
        "    return text",
        ("tests/unit/pipelines/reflect/test_prompt_injection.py",),
    ),
    Guard(
        "names-in-prompts",
        "pipelines/reflect/prompts.py",
        '        block = fence.block("subject", [quoted(subject)])',
        "        block = subject",
        ("tests/unit/pipelines/reflect/test_prompt_injection.py",),
    ),
    Guard(
        "near-duplicates",
        "pipelines/retain/near_duplicates.py",
        "    if _negations(first) != _negations(second) or _figures(first) != _figures(second):\n        return True\n",
        "",
        ("tests/unit/pipelines/retain/test_near_duplicates.py",),
    ),
    Guard(
        "identity-of-memories",
        "pipelines/retain/drafts.py",
        "    if session_id or occasion:\n",
        "    if False:\n",
        ("tests/unit/pipelines/retain/test_retain.py",),
    ),
    Guard(
        "pages",
        "policy/requests/page_tokens.py",
        "    if digest != _digest(scope):",
        "    if False:",
        ("tests/unit/policy/requests/test_page_tokens.py",),
    ),
    Guard(
        "source-addresses",
        "providers/proxy/egress.py",
        "is_allowed(one, self._bounds.networks)",
        "True",
        ("tests/unit/providers/proxy/test_addresses.py",),
    ),
    Guard(
        "source-tokens",
        "providers/proxy/credentials.py",
        "await asyncio.to_thread(self._kept.replace, str(replaced))",
        "self._kept = None",
        ("tests/unit/providers/proxy/test_engine.py",),
    ),
    Guard(
        "links-of-folders",
        "shared_kb/folder.py",
        '_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)',
        "_FILE_FLAGS = os.O_RDONLY",
        ("tests/unit/shared_kb/test_folder.py",),
    ),
    Guard(
        "parents-of-folders",
        "shared_kb/folder.py",
        '                if name in {".", ".."}:',
        "                if not name:",
        ("tests/unit/shared_kb/test_folder.py",),
    ),
    Guard(
        "unreadable-documents",
        "shared_kb/plan.py",
        "    stored = _without(stored, folder, set(kept))",
        "    del kept",
        ("tests/unit/shared_kb/test_plan.py",),
    ),
    Guard(
        "whole-documents",
        "shared_kb/plan.py",
        "counts == {len(rows)} and len(names) == len(rows)",
        "bool(counts) and bool(names)",
        ("tests/property/test_shared_kb.py",),
    ),
    Guard(
        "graph-filter-on-every-hop",
        "stores/sqlite/graph/visibility.py",
        "        stated, known = memory + only, memory",
        "        stated, known = memory, memory",
        ("tests/unit/pipelines/graph/test_link_expansion.py", "-k", "connects_nothing or hidden"),
    ),
    Guard(
        "graph-budget",
        "pipelines/graph/neighbors.py",
        "    own = own[: budget.left]",
        "    own = own[:]",
        ("tests/unit/pipelines/graph/test_link_expansion.py", "-k", "budget"),
    ),
    Guard(
        "graph-mentions-read",
        "stores/sqlite/graph/reader.py",
        "_MENTIONS_READ = 2_048",
        "_MENTIONS_READ = 2_048_000",
        ("tests/unit/pipelines/graph/test_link_expansion.py", "-k", "hub"),
    ),
)


def chosen(names: Sequence[str]) -> list[Guard]:
    """The guards of these names, or all.

    Raises:
        SystemExit: There is no such guard.
    """
    known = {guard.name: guard for guard in GUARDS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no guard is named {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(GUARDS)


def switched_off(guard: Guard, folder: Path) -> None:
    """Copy the package into ``folder``, without this guard.

    Raises:
        LookupError: Its text does not stand in the file exactly once.
    """
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    path = folder / "astrocyte" / guard.file
    text = path.read_text(encoding="utf-8")
    if text.count(guard.on) != 1:
        raise LookupError(f"{guard.name}: its text stands {text.count(guard.on)} times in {guard.file}, not once")
    path.write_text(text.replace(guard.on, guard.off), encoding="utf-8")


def run(package: Path, tests: Sequence[str]) -> int:
    """The exit code of pytest with the package at ``package``."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
    return done.returncode


def holds(guard: Guard) -> str | None:
    """None where the tests of a guard fail without it; else what is wrong."""
    with tempfile.TemporaryDirectory(prefix="astrocyte-guard-") as folder:
        package = Path(folder) / "python"
        try:
            switched_off(guard, package)
        except LookupError as error:
            return str(error)
        code = run(package, guard.tests)
    return None if code == TESTS_FAILED else f"{guard.name}: pytest ended with {code} without it; 1 was expected"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the guards; the number of those that do not hold."""
    parser = argparse.ArgumentParser(
        prog="python tests/guards.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="guards to check; all by default")
    parser.add_argument("--list", action="store_true", help="print the guards and their tests")
    options = parser.parse_args(arguments)
    guards = chosen(options.names)
    if options.list:
        for guard in guards:
            sys.stdout.write(f"{guard.name:<24}{guard.file:<44}{' '.join(guard.tests)}\n")
        return 0
    wrong = 0
    for guard in guards:
        problem = holds(guard)
        wrong += problem is not None
        sys.stdout.write(f"{'ok' if problem is None else 'WRONG':<6}{guard.name if problem is None else problem}\n")
        sys.stdout.flush()
    return wrong


if __name__ == "__main__":
    sys.exit(main())
