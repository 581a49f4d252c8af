"""Writes registry/taxonomy.json, the form of taxonomy.toml that commands read.

python tests/registry/taxonomy_json.py
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from compilescope.knowledge.registry import taxonomy

SOURCE = Path(taxonomy.__file__).with_name("taxonomy.toml")
TARGET = SOURCE.with_suffix(".json")


def ready() -> bytes:
    """A category a line, so that a change can be read."""
    made = msgspec.json.format(msgspec.json.encode(taxonomy.read_taxonomy(SOURCE)), indent=0)
    return made.replace(b'{"id"', b'\n{"id"') + b"\n"


if __name__ == "__main__":
    TARGET.write_bytes(ready())
