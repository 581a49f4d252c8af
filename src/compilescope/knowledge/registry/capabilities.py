"""Which torch has what this tool makes use of: detected once in each, kept in capabilities.json.

`benchmarks/versions.py record` makes the file, from what `torchapi.capabilities` detects.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from compilescope.knowledge.registry.history import release_key, release_of

CAPABILITIES = Path(__file__).with_name("capabilities.json")


class SeenCapabilities(msgspec.Struct, frozen=True):
    """What was detected, and where."""

    versions: tuple[str, ...] = ()
    """Releases of torch that were looked at, the oldest first."""
    seen: dict[str, tuple[str, ...]] = {}
    """Capability -> those of them that have it."""
    python: str = "3.11"
    """With which all of that was detected."""
    pythons: dict[str, dict[str, tuple[str, ...]]] = {}
    """Another Python -> a release -> what is the other way round there: Dynamo reads bytecode."""

    def of(self, torch: str, python: str) -> frozenset[str] | None:
        """What a torch has; None where that version was not looked at. A Python with which it was
        not looked at counts as the usual one."""
        release = release_of(torch)
        if release not in self.versions:
            return None
        usual = frozenset(name for name, found in self.seen.items() if release in found)
        return usual ^ frozenset(self.pythons.get(python, {}).get(release, ()))

    def with_python(self, torch: str, python: str, found: Iterable[str]) -> SeenCapabilities:
        """The record, with what was `found` in a release of it with another Python."""
        usual = {name for name, there in self.seen.items() if torch in there}
        other = tuple(sorted((usual ^ set(found)) & set(self.seen)))
        pythons = {**self.pythons, python: {**self.pythons.get(python, {}), torch: other}}
        return msgspec.structs.replace(self, pythons=pythons)

    def with_torch(
        self, torch: str, found: Iterable[str], known: Iterable[str]
    ) -> SeenCapabilities:
        """The record of the `known` capabilities, with what was `found` in this release."""
        there = set(found)

        def versions_of(name: str) -> set[str]:
            others = set(self.seen.get(name, ())) - {torch}
            return others | {torch} if name in there else others

        return msgspec.structs.replace(
            self,
            versions=_in_order({*self.versions, torch}),
            seen={name: _in_order(versions_of(name)) for name in sorted(known)},
        )


def _in_order(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=release_key))


@lru_cache(maxsize=1)
def load_capabilities() -> SeenCapabilities:
    return msgspec.json.decode(CAPABILITIES.read_bytes(), type=SeenCapabilities)


def capabilities_text(record: SeenCapabilities) -> str:
    """The file: a line for each capability."""
    rows = ",\n".join(
        f"  {_json(name)}: {_json(versions)}" for name, versions in sorted(record.seen.items())
    )
    others = ",\n".join(
        f"  {_json(python)}: {_json(differing)}" for python, differing in record.pythons.items()
    )
    return (
        f'{{\n "versions": {_json(record.versions)},\n "python": {_json(record.python)},\n'
        f' "pythons": {{\n{others}\n }},\n "seen": {{\n{rows}\n }}\n}}\n'
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
