"""What users see or write when they meet a category of graph breaks, so that search finds it.

The words are in symptoms.toml; this reads and checks them.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

import msgspec

from compilescope.errors import ToolError
from compilescope.registry.taxonomy import CATEGORY_IDS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = Path(__file__).with_name("symptoms.toml")


@lru_cache(maxsize=1)
def load_symptoms() -> dict[str, tuple[str, ...]]:
    """The symptoms of each category: the first is for display, all are for search."""
    return read_symptoms(_FILE)


def read_symptoms(path: Path) -> dict[str, tuple[str, ...]]:
    """Read and check a file of symptoms."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        symptoms = msgspec.convert(data, dict[str, tuple[str, ...]])
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolError(f"The symptoms {path} could not be read: {why}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ToolError(f"The symptoms {path} are not valid: {error}.") from None
    if set(symptoms) != set(CATEGORY_IDS) or not all(symptoms.values()):
        raise ToolError(f"The symptoms {path} are not valid: each category needs one or more.")
    return symptoms
