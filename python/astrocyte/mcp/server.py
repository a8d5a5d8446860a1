"""Answers of MCP requests: tools, resources, prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
from pydantic import ValidationError as PydanticError
from pydantic_core import to_json

from astrocyte.api import NO_BANK, RPCS, Backend, Concurrency
from astrocyte.config import Settings
from astrocyte.config.loading.environment import package_version
from astrocyte.deadlines import within
from astrocyte.errors import AstrocyteError, NotFound, ValidationError
from astrocyte.mcp import resources
from astrocyte.mcp.arguments.shared_kb import SharedBank
from astrocyte.mcp.prompts import INSTRUCTIONS, PROMPTS
from astrocyte.mcp.tools import TOOLS
from astrocyte.mcp.tools.row import Target, Tool
from astrocyte.model import Caller
from astrocyte.model.multi_bank import OPEN_STRATEGY
from astrocyte.services.interceptors import log_fault
from astrocyte.services.method_limits import rules_of

# Code of the protocol for a resource that does not exist.
RESOURCE_NOT_FOUND = -32_002
# Problems of the arguments in one message; a model corrects a few at a time.
SHOWN_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class Session:
    """Backend and caller of a request, and the bank that is fixed for it, if any."""

    backend: Backend
    caller: Caller
    bank_id: str | None = None


class Offer(NamedTuple):
    """A tool of the table as one kind of session sees it."""

    tool: Tool
    arguments: type[BaseModel]
    listed: types.Tool


Context = ServerRequestContext[Any, Any]
SessionOf = Callable[[Context], Session]


def mcp_server(settings: Settings, session_of: SessionOf) -> Server[Any]:
    """Create the MCP server.

    Args:
        settings: Settings of tools, deadlines and concurrency.
        session_of: Returns the session of a request.
    """
    answers = Answers(settings, session_of)
    return Server(
        "astrocyte",
        version=package_version(),
        title="Astrocyte memory",
        instructions=INSTRUCTIONS,
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_resource_templates,
        on_read_resource=answers.read_resource,
        on_list_prompts=answers.list_prompts,
        on_get_prompt=answers.get_prompt,
    )


class Answers:
    """Handlers of the MCP requests.

    Args:
        settings: Settings of tools, deadlines and concurrency.
        session_of: Returns the session of a request.
    """

    def __init__(self, settings: Settings, session_of: SessionOf) -> None:
        self._default_bank = settings.mcp.default_bank_id
        self._session_of = session_of
        self._rules = rules_of(settings.server)
        self._open = offers(settings, fixed_bank=False)
        self._fixed = offers(settings, fixed_bank=True)

    async def list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """List the tools that the settings expose, in one page."""
        offered = self._offered(self._session_of(context))
        return types.ListToolsResult(tools=[offer.listed for offer in offered.values()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool. A failure is a result with ``isError``, so that the model can correct its call."""
        session = self._session_of(context)
        offer = self._offered(session).get(params.name)
        if offer is None:
            names = ", ".join(self._offered(session))
            raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name[:64]!r}; expected one of {names}")
        tool = offer.tool
        try:
            given = offer.arguments.model_validate(params.arguments or {})
            request = tool.prepare(given, self._target(session, tool, given))
            kind = RPCS[tool.request].concurrency
            response = await self._limited(kind, session.backend.call(session.caller, request))
        except PydanticError as error:
            return _refused(f"INVALID_ARGUMENT: {_problems(error)}")
        except AstrocyteError as error:
            return _refused(f"{error.reason}: {error.message}")
        except Exception as error:  # noqa: BLE001 - the message of an unknown error may hold content
            log_fault(error, f"mcp/{tool.name}", str(context.request_id))
            return _refused("INTERNAL: the call failed; the log of the server has the cause")
        result = tool.result.of(response)
        return types.CallToolResult(
            content=[types.TextContent(text=to_json(result).decode())],
            structured_content=result.model_dump(mode="json"),
        )

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List a page of banks."""
        session = self._session_of(context)
        cursor = (params.cursor if params is not None else None) or ""
        work = resources.listed(session.backend, session.caller, session.bank_id, cursor)
        found: types.ListResourcesResult = await self._resource(context, work)
        return found

    async def list_resource_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the templates of resources."""
        return types.ListResourceTemplatesResult(resource_templates=list(resources.TEMPLATES))

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read a bank or a memory."""
        session = self._session_of(context)
        document = await self._resource(
            context, resources.read(session.backend, session.caller, session.bank_id, params.uri)
        )
        text = to_json(document).decode()
        contents = types.TextResourceContents(uri=params.uri, text=text, mime_type=resources.JSON)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """List the prompts."""
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=one.name, title=one.title, description=one.description) for one in PROMPTS]
        )

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Return a prompt as a message of the user."""
        prompt = next((one for one in PROMPTS if one.name == params.name), None)
        if prompt is None:
            names = ", ".join(one.name for one in PROMPTS)
            raise MCPError(types.INVALID_PARAMS, f"unknown prompt {params.name[:64]!r}; expected one of {names}")
        if params.arguments:
            raise MCPError(types.INVALID_PARAMS, f"prompt {prompt.name} takes no arguments; leave them out")
        message = types.PromptMessage(role="user", content=types.TextContent(text=prompt.text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    def _offered(self, session: Session) -> Mapping[str, Offer]:
        return self._open if session.bank_id is None else self._fixed

    def _target(self, session: Session, tool: Tool, given: BaseModel) -> Target:
        """The banks of a call: the fixed one, the named ones, or the default."""
        if tool.chosen_by is None:
            return Target(NO_BANK)
        if session.bank_id is not None:
            return Target(session.bank_id)
        named, banks = getattr(given, "bank_id", None), tuple(getattr(given, "banks", ()))
        strategy = getattr(given, "strategy", None)
        if banks:
            if named is not None:
                raise ValidationError("is given together with banks; name the banks in one of the two", field="bank_id")
            return Target(banks=banks, strategy=replace(OPEN_STRATEGY, mode=strategy) if strategy else None)
        if strategy is not None:
            raise ValidationError("is for several banks; name them in banks, or leave it out", field="strategy")
        bank_id = named or self._default_bank
        if bank_id is None and tool.chosen_by is SharedBank:
            return Target(NO_BANK)
        if bank_id is None:
            raise ValidationError("is missing, and the server has no default bank; name a bank", field="bank_id")
        return Target(bank_id)

    async def _limited(self, kind: Concurrency, work: Any) -> Any:  # noqa: ANN401 - a coroutine and its result
        """Await work under the concurrency limit and the deadline of its kind."""
        rules = self._rules[kind]
        try:
            await rules.admission.enter()
        except BaseException:
            work.close()
            raise
        try:
            return await (work if rules.deadline_seconds is None else within(rules.deadline_seconds, work))
        finally:
            rules.admission.leave()

    async def _resource(self, context: Context, work: Any) -> Any:  # noqa: ANN401 - as above
        """Await work on a resource; raise its failure as a protocol error."""
        try:
            return await self._limited(Concurrency.READ, work)
        except (resources.UnknownResource, NotFound):
            raise MCPError(RESOURCE_NOT_FOUND, "there is no such resource; list the resources and templates") from None
        except AstrocyteError as error:
            raise MCPError(types.INVALID_PARAMS, f"{error.reason}: {error.message}") from None
        except Exception as error:  # noqa: BLE001 - as in call_tool
            log_fault(error, f"mcp/{context.method}", str(context.request_id))
            raise MCPError(types.INTERNAL_ERROR, "the call failed; the log of the server has the cause") from None


def offers(settings: Settings, *, fixed_bank: bool) -> Mapping[str, Offer]:
    """The tools that the settings expose, by name, for sessions with or without a fixed bank."""
    found: dict[str, Offer] = {}
    for tool in TOOLS:
        # A session with a fixed bank reads and writes nothing outside of it.
        if tool.exposed(settings.mcp) and not (fixed_bank and tool.chosen_by is None):
            arguments = tool.model(settings.mcp, fixed_bank=fixed_bank)
            found[tool.name] = Offer(tool, arguments, _listed(tool, arguments))
    return found


def _listed(tool: Tool, arguments: type[BaseModel]) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=arguments.model_json_schema(),
        output_schema=tool.result.model_json_schema(mode="serialization"),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def _problems(error: PydanticError) -> str:
    """The problems of arguments, without the values that came."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(str(part)[:64] for part in one['loc'])}: {one['msg']}" for one in found[:SHOWN_PROBLEMS]]
    more = f" (and {len(found) - SHOWN_PROBLEMS} more)" if len(found) > SHOWN_PROBLEMS else ""
    return "; ".join(told) + more


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
