"""PyTorch's on-disk caches."""

from __future__ import annotations

from compilescope.report.blocks import Block, Facts, Words, words
from compilescope.report.places import count
from compilescope.report.section import Reading, Section

_NAMES = {"fx_graph": "Inductor", "aot_autograd": "AOTAutograd"}


def _build(reading: Reading) -> list[Block]:
    rows: list[tuple[str, Words]] = []
    for name, cache in reading.digest.caches.items():
        seen = [count(cache.hits, "hit"), count(cache.misses, "miss", "misses")]
        if cache.bypasses:
            seen.append(count(cache.bypasses, "bypass", "bypasses"))
        rows.append((_NAMES.get(name, name), words(", ".join(seen))))
    return [Facts(tuple(rows))] if rows else []


SECTION = Section("caches", 100, _build, "Caches", "on disk", in_summary=False)
