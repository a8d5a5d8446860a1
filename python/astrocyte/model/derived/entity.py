"""Names of people, things and places that memories speak of."""

from __future__ import annotations

import re
from typing import NamedTuple

# Of what an id is made of: letters and digits of any script.
_REST = re.compile(r"[\W_]+")
# The type of an entity that nobody gave one.
NAME = "NAME"


class Entity(NamedTuple):
    """Somebody or something that has a name: the name as it is shown, and a word for its kind, such as ``PERSON``."""

    name: str
    entity_type: str = NAME

    @property
    def folded(self) -> str:
        """The name as it is looked for: without case, one blank between words."""
        return " ".join(self.name.casefold().split())

    @property
    def id(self) -> str:
        """``person:alice-smith``: the same for every way of writing the name with other case, blanks or hyphens."""
        return f"{self.entity_type.lower()}:{_REST.sub('-', self.name.casefold()).strip('-')}"
