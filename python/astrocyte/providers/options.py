"""Options of a provider, validated like settings: an unknown one is an error with the nearest known name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic import ValidationError as PydanticError

from astrocyte.errors import ConfigError

O = TypeVar("O", bound=BaseModel)  # noqa: E741 - the type of the options


def read_options(model: type[O], options: Mapping[str, Any], at: str = "embedding.options") -> O:
    """The options as ``model``; ``at`` is where the settings hold them.

    Raises:
        ConfigError: One is unknown, missing or out of its range. Values are not repeated: one may be a key.
    """
    for name in options:
        if name not in model.model_fields:
            near = difflib.get_close_matches(name, list(model.model_fields), n=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(model.model_fields)) or 'none'}"
            )
            raise ConfigError(f"{at}.{name} is not an option; {hint}", metadata={"key": name})
    try:
        return model(**options)
    except PydanticError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{at}.{name}: {first['msg']}", metadata={"key": name}) from None
