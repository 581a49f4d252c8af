"""PyTorch's on-disk caches, and CUDA graphs that were not used."""

from __future__ import annotations

from compilescope.report.blocks import Block, Facts, Heading, Paragraph, Words, words
from compilescope.report.places import count
from compilescope.report.section import Section
from compilescope.rules.digest import Digest

_NAMES = {"fx_graph": "Inductor", "aot_autograd": "AOTAutograd"}


def _build(digest: Digest) -> list[Block]:
    blocks: list[Block] = []
    if digest.caches:
        blocks.append(Heading("Caches", "on disk"))
        rows: list[tuple[str, Words]] = []
        for name, cache in digest.caches.items():
            seen = [count(cache.hits, "hit"), count(cache.misses, "miss", "misses")]
            if cache.bypasses:
                seen.append(count(cache.bypasses, "bypass", "bypasses"))
            rows.append((_NAMES.get(name, name), words(", ".join(seen))))
        blocks.append(Facts(tuple(rows)))
    if digest.cudagraph_skips:
        blocks.append(Heading("CUDA graphs not used"))
        for reason, times in digest.cudagraph_skips.items():
            blocks.append(Paragraph(words(f"{reason} ({count(times, 'time')})"), hanging="-"))
    return blocks


SECTION = Section("caches", 60, _build)
