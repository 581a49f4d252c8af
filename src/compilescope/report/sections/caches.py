"""PyTorch's on-disk caches."""

from __future__ import annotations

from compilescope.analysis.cache_lookups import CACHE_NAMES, Bypass
from compilescope.report.blocks import Block, Facts, Item, Paragraph, Span, Words, note, words
from compilescope.report.places import count, place
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    rows: list[tuple[str, Words]] = []
    for name, cache in reading.digest.caches.items():
        seen = [count(cache.hits, "hit"), count(cache.misses, "miss", "misses")]
        if cache.bypasses:
            seen.append(count(cache.bypasses, "bypass", "bypasses"))
        rows.append((CACHE_NAMES.get(name, name), words(", ".join(seen))))
    bypassed = [
        (CACHE_NAMES.get(name, name), each)
        for name, cache in reading.digest.caches.items()
        for each in cache.reasons
    ]
    most = reading.most_items
    blocks: list[Block] = [Facts(tuple(rows))] if rows else []
    blocks += [
        _bypassed(number, *each, reading.run.header.root)
        for number, each in enumerate(bypassed[:most], 1)
    ]
    if len(bypassed) > most:
        blocks.append(note(f"and {len(bypassed) - most} more bypasses; see --json"))
    return blocks


def _bypassed(number: int, cache: str, each: Bypass, root: str) -> Item:
    at = place(each.file, each.line, root) if each.file else "unknown location"
    where = words(Span(at, "strong"), f" in {each.function}" if each.function else "")
    times = f"{each.count} times" if each.count > 1 else ""
    return Item(
        str(number), where, words(times), (Paragraph(words(f"{cache} bypassed: {each.reason}")),)
    )


SECTION = Section("caches", 100, _build, "Caches", "on disk", in_summary=False)
