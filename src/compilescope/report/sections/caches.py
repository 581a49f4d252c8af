"""The caches of PyTorch and Triton, on disk and on other machines."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.knowledge.analysis.cache_lookups import CACHE_NAMES, Bypass
from compilescope.record.bodies import KernelEmitted
from compilescope.report.blocks import Block, Facts, Item, Paragraph, Span, Words, note, words
from compilescope.report.places import count, place
from compilescope.report.section import Reading, Section

_NO_REMOTE = (
    "No remote cache was asked: they are off unless `TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE=1`, "
    "`TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE=1` and the like are set."
)
_NO_WORKERS = (
    "Of Triton's cache, the looks of Inductor's worker processes are unavailable. With "
    "`TORCHINDUCTOR_COMPILE_THREADS=1` the program's own process compiles all kernels."
)


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
    return [*blocks, *map(note, _not_told(reading))]


def _not_told(reading: Reading) -> Iterator[str]:
    """What no row of a cache says: it was not asked, or nobody watched."""
    caches = reading.digest.caches
    kernels = [name for _, body in reading.run.of(KernelEmitted) for name in body.kernels]
    if kernels and not caches:
        yield "Inductor compiled, and asked none of its caches: they are off."
    if caches and not any(name.startswith("remote") for name in caches):
        yield _NO_REMOTE
    if "triton" in caches or any(name.startswith("triton_") for name in kernels):
        yield _NO_WORKERS


def _bypassed(number: int, cache: str, each: Bypass, root: str) -> Item:
    at = place(each.file, each.line, root) if each.file else "unknown location"
    where = words(Span(at, "strong"), f" in {each.function}" if each.function else "")
    times = f"{each.count} times" if each.count > 1 else ""
    return Item(
        str(number), where, words(times), (Paragraph(words(f"{cache} bypassed: {each.reason}")),)
    )


SECTION = Section("caches", 100, _build, "Caches", "on disk and remote", in_summary=False)
