"""Commands for agents' private memory."""

from __future__ import annotations

import click

from astrocyte.api.requests import (
    ForgetAgentMemory,
    ListAgentMemories,
    ListAgents,
    RecallAgentMemory,
    RecanonicaliseAgentMemories,
    Remember,
)
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import ERR, OUT, grid, print_json, stamp
from astrocyte.model import AgentMemory, AgentSummary

_AGENT = click.option("--agent", "agent_id", default="", help="Agent.  [default: the principal of the credential]")
_USER = click.option("--user", "user_id", help="User that the memory is about.")


@click.group()
def agent() -> None:
    """Remember, recall, forget and list the private memories of an agent.

    \b
    astrocyte agent remember "deploy window" "Deploys happen on Tuesdays." --agent atlas
    astrocyte agent recall "when do we deploy?" --agent atlas
    astrocyte agent list --agent atlas
    """


@agent.command("remember")
@click.argument("topic")
@click.argument("content")
@_AGENT
@_USER
@click.option("--source", "pairs", multiple=True, metavar="KEY=VALUE", help="Origin; may be repeated.")
@operation
async def remember(
    session: Session, /, topic: str, content: str, agent_id: str, user_id: str | None, pairs: tuple[str, ...]
) -> None:
    """Store CONTENT about TOPIC, or update the nearest memory of TOPIC.

    \b
    astrocyte agent remember "deploy window" "Deploys happen on Tuesdays." --agent atlas --source platform=slack
    """
    source: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"expected KEY=VALUE, got {pair!r}", param_hint="--source")
        source[key] = value
    outcome = await session.backend.call(session.caller, Remember(topic, content, agent_id, user_id, source))
    if session.as_json:
        print_json(outcome)
        return
    click.echo(f"{outcome.memory_id} {'updated' if outcome.was_update else 'stored'}, topic {outcome.topic!r}")
    if outcome.proposed_term_id:
        click.echo(f"The topic was proposed as a canonical term: {outcome.proposed_term_id}")


@agent.command("recall")
@click.argument("query")
@_AGENT
@_USER
@click.option("-k", "--max-results", type=click.IntRange(1, 100), default=10, show_default=True, help="Hits.")
@click.option("--expected", is_flag=True, help="A hit is expected: report an empty answer as an alert.")
@operation
async def recall(
    session: Session, /, query: str, agent_id: str, user_id: str | None, max_results: int, expected: bool
) -> None:
    """Rank the agent's memories and those of the shared banks for QUERY.

    \b
    astrocyte agent recall "when do we deploy?" --agent atlas --expected
    """
    request = RecallAgentMemory(query, max_results, agent_id, user_id, expected)
    answer = await session.backend.call(session.caller, request)
    if session.as_json:
        print_json(answer)
        return
    table = grid(("score", "source", "topic or bank", "text"), right=("score",))
    for hit in answer.hits:
        table.add_row(f"{hit.score:.2f}", str(hit.source_tag), hit.topic or hit.bank_id or "", hit.content)
    OUT.print(table if answer.hits else "There are no hits.")
    for warning in answer.warnings:
        ERR.print(warning, style="yellow", markup=False)


@agent.command("forget")
@click.argument("memory_id")
@_AGENT
@click.option("--reason", default="", help="Reason for the audit log.")
@operation
async def forget(session: Session, /, memory_id: str, agent_id: str, reason: str) -> None:
    """Remove MEMORY_ID from recalls and lists. The row stays, and the audit log records it.

    \b
    astrocyte agent forget agm_0123456789abcdef0123456789abcdef --agent atlas --reason "asked by the user"
    """
    gone = await session.backend.call(session.caller, ForgetAgentMemory(memory_id, agent_id, reason))
    if session.as_json:
        print_json(gone)
    else:
        click.echo(f"Forgot {gone.memory_id}.")


@agent.command("list")
@_AGENT
@click.option("--forgotten", is_flag=True, help="Include forgotten memories.")
@operation
async def list_memories(session: Session, /, agent_id: str, forgotten: bool) -> None:
    """List the memories of an agent, oldest first.

    \b
    astrocyte agent list --agent atlas --forgotten
    """
    found: list[AgentMemory] = []
    token = ""
    while True:
        page = await session.backend.call(
            session.caller, ListAgentMemories(agent_id, include_forgotten=forgotten, page_token=token)
        )
        found.extend(page.memories)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("memory", "topic", "text", "recalls", "updated", "forgotten"), right=("recalls",))
    for one in found:
        times = (stamp(one.updated_at), stamp(one.deleted_at))
        table.add_row(one.memory_id, one.topic, one.content, str(one.access_count), *times)
    OUT.print(table if found else "There are no memories.")


@agent.command("agents")
@operation
async def list_agents(session: Session, /) -> None:
    """List the agents that have memories: all of the tenant for an auditor, else the caller alone.

    \b
    astrocyte agent agents
    """
    found: list[AgentSummary] = []
    token = ""
    while True:
        page = await session.backend.call(session.caller, ListAgents(page_token=token))
        found.extend(page.agents)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("agent", "memories", "forgotten", "updated"), right=("memories", "forgotten"))
    for one in found:
        table.add_row(one.agent_id, str(one.memory_count), str(one.forgotten_count), stamp(one.updated_at))
    OUT.print(table if found else "There are no agents.")


@agent.command("recanonicalise")
@click.option("--agent", "agent_id", default="", help="Only memories of this agent.  [default: all of the tenant]")
@click.option("--dry-run", is_flag=True, help="Count what would change, and change nothing.")
@operation
async def recanonicalise(session: Session, /, agent_id: str, dry_run: bool) -> None:
    """Resolve the topics of stored memories again, after terms were approved or merged.

    Memories that are nearly equal under their new topic are merged.

    \b
    astrocyte agent recanonicalise --dry-run
    astrocyte agent recanonicalise
    """
    examined = changed = merged = 0
    token = ""
    while True:
        request = RecanonicaliseAgentMemories(agent_id, dry_run, page_token=token)
        part = await session.backend.call(session.caller, request)
        examined, changed, merged = examined + part.examined, changed + part.changed, merged + part.merged
        token = part.next_page_token
        if not token:
            break
    if session.as_json:
        print_json({"examined": examined, "changed": changed, "merged": merged})
    else:
        would = "would change" if dry_run else "changed"
        click.echo(f"{examined} memories examined, {changed} {would}, {merged} of them merged")
