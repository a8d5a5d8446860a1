"""Table of the tools. Listing, schemas, annotations, deadlines, limits and calls derive from its rows."""

from __future__ import annotations

from astrocyte.mcp.tools.administration import ADMINISTRATION_TOOLS
from astrocyte.mcp.tools.agents import AGENT_TOOLS
from astrocyte.mcp.tools.coverage import COVERAGE_TOOLS
from astrocyte.mcp.tools.directives import DIRECTIVE_TOOLS
from astrocyte.mcp.tools.graph import GRAPH_TOOLS
from astrocyte.mcp.tools.memory import MEMORY_TOOLS
from astrocyte.mcp.tools.mental_models import MENTAL_MODEL_TOOLS
from astrocyte.mcp.tools.observations import OBSERVATION_TOOLS
from astrocyte.mcp.tools.shared_kb import SHARED_KB_TOOLS
from astrocyte.mcp.tools.wiki import WIKI_TOOLS

TOOLS = (
    *MEMORY_TOOLS,
    *AGENT_TOOLS,
    *SHARED_KB_TOOLS,
    *OBSERVATION_TOOLS,
    *MENTAL_MODEL_TOOLS,
    *WIKI_TOOLS,
    *GRAPH_TOOLS,
    *COVERAGE_TOOLS,
    *DIRECTIVE_TOOLS,
    *ADMINISTRATION_TOOLS,
)
