"""Folders of Markdown for tests of shared knowledge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from astrocyte import Astrocyte
from astrocyte.model import KbDocument

BANK = "shared_kb"

HANDBOOK = {
    "decisions/0005-database.md": "---\nstatus: accepted\ndate: 2026-05-06\ntags: storage\n---\n# Store graphs in"
    " PostgreSQL\n\nJSONB columns are enough for graphs.\n",
    "decisions/0006-queue.md": "---\nstatus: proposed\n---\n# Use Redis streams as a queue\n\nWorkers read them.\n",
    "specs/approved/SPEC-023-memory.md": "# Memory of agents\n\nAgents remember across conversations.\n",
    "specs/drafts/SPEC-024-voice.md": "# Voice of agents\n\nAgents speak.\n",
    "ARCHITECTURE.md": "# System\n\n| component | depends on |\n|---|---|\n| gateway | auth, store |\n| store | |\n",
    "GLOSSARY.md": "# Glossary\n\nA deploy window is the time in which we deploy.\n",
}


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files by path below a folder."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


async def every(brain: Astrocyte, bank: str = BANK, **options: Any) -> list[KbDocument]:
    """All documents of a list, over its pages."""
    found: list[KbDocument] = []
    token = ""
    while True:
        page = await brain.shared_kb_list(bank, page_token=token, **options)
        found.extend(page.documents)
        token = page.next_page_token
        if not token:
            return found
