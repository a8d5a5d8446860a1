"""Store two memories and recall the relevant one. The server is at $ASTROCYTE_ADDRESS, by default localhost:50051."""

from __future__ import annotations

import os

from astrocyte_client import connect

with connect(os.environ.get("ASTROCYTE_ADDRESS", "localhost:50051")) as client:
    for content in ("Mara is allergic to sesame, not to nuts.", "Mara plays the cello."):
        client.retain(bank_id="family-python", content=content)
    found = client.recall(bank_id="family-python", query="what is Mara allergic to?")
    for hit in found.hits:
        print(f"{hit.score:.2f}  {hit.text}")
