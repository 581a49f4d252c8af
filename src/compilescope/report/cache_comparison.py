"""What became of the caches of two runs: what the later one found, and the part of each key that
differs.
"""

from __future__ import annotations

from compilescope.analysis.cache_changes import CacheComparison, CacheMiss, ChangedPart
from compilescope.analysis.cache_lookups import CACHE_NAMES
from compilescope.report.blocks import Block, Facts, Item, Paragraph, Part, Span, Words, note, words
from compilescope.report.places import count, first_few, place

_PARTS = {
    "gm": "what was traced",
    "torch_version": "its version or its files",
    "user_defined_triton_source": "Triton kernels",
    "triton_kernel_source_codes": "Triton kernels",
    "cpp_runtime_thread_count": "threads",
    "triton_version": "Triton's version or its files",
    "triton_source": "the kernel",
    "triton_attributes": "what is known of the arguments' values (divisible by 16)",
    "triton_target": "the GPU's architecture",
    "triton_backend": "the version of ptxas",
}
_ITEMS = {
    "example_inputs": "input {}",
    "fx_kwargs": "{}",
    "inductor_config": "{}",
    "triton_signature": "argument {}",
    "triton_constants": "constant {}",
    "triton_options": "{}",
    "triton_environment": "{}",
}
"""Torch's names, where they say more than a reader of settings needs."""
_NOTES = {
    "absent": "An empty cache or another one (`TORCHINDUCTOR_CACHE_DIR`, `TRITON_CACHE_DIR`, "
    "another server), or code that was never saved.",
    "guards": "The code that is there was compiled for other sizes.",
    "unknown": "Torch lists no parts of this key, or one of the runs does not hold them.",
}
_MOST_REASONS = 60
"""Reasons. Chosen: more than people read; JSON has them all."""
Versions = tuple[str | None, str | None]


def cache_parts(seen: CacheComparison | None, root: str, torch: Versions) -> list[Part]:
    """Nothing where no cache was asked, or all was found both times."""
    if seen is None or seen.lookups == seen.hits:
        return []
    blocks: list[Block] = [Paragraph(_cache_verdict(seen))]
    groups: dict[tuple[object, ...], list[CacheMiss]] = {}
    for miss in seen.missed:
        groups.setdefault((miss.why, miss.parts, miss.reason), []).append(miss)
    shown = list(groups.values())[:_MOST_REASONS]
    blocks += [_item(number, misses, root, torch) for number, misses in enumerate(shown, 1)]
    if len(groups) > _MOST_REASONS:
        blocks.append(note(f"and {len(groups) - _MOST_REASONS} more reasons; see --json"))
    return [Part("caches", "Caches", tuple(blocks), "of torch and Triton")]


def _cache_verdict(seen: CacheComparison) -> Words:
    before, after = (
        f"{hits} of {count(lookups, 'lookup')}"
        for hits, lookups in zip(seen.hits, seen.lookups, strict=True)
    )
    return words(f"Found: {before} before, {after} after.")


def _item(number: int, misses: list[CacheMiss], root: str, torch: Versions) -> Item:
    first = misses[0]
    blocks: list[Block] = []
    if first.parts:
        blocks.append(Facts(_facts(first.parts, torch)))
    elif first.why in _NOTES:
        blocks.append(note(_NOTES[first.why]))
    blocks += [note(f"{at}: {names}") for at, names in _places(misses, root).items()]
    return Item(str(number), _heading(first), (), tuple(blocks), tags=(f"why:{first.why}",))


def _heading(miss: CacheMiss) -> Words:
    if miss.why == "key":
        kinds = ", ".join(dict.fromkeys(part.kind for part in miss.parts))
        return words("The key differs: ", Span(kinds, "strong"))
    if miss.why == "bypass":
        return words(Span("The cache was bypassed: ", "strong"), miss.reason or "no reason given")
    return words(
        {
            "absent": "The key is the same, and there was no entry",
            "guards": "The key is the same, and no entry fits",
            "new": "Not compiled in the earlier run",
            "unknown": "The key differs, in what is not known",
        }[miss.why]
    )


def _facts(parts: tuple[ChangedPart, ...], torch: Versions) -> tuple[tuple[str, Words], ...]:
    rows: dict[str, list[str]] = {}
    for part in parts:
        rows.setdefault(part.kind, []).append(_part(part, torch))
    return tuple((kind, words(first_few(told))) for kind, told in rows.items())


def _part(part: ChangedPart, torch: Versions) -> str:
    before, after = part.before, part.after
    if part.kind == "torch" and torch[0] != torch[1]:
        return f"{torch[0] or '?'} -> {torch[1] or '?'}"
    name = _name(part.name)
    if part.kind == "source" and name == part.name:
        return f"{name} was edited"
    # Of what is too long to be kept, and of a tensor's rarer properties, there is nothing to show.
    return name if before == after else f"{name} {before or '(long)'} -> {after or '(long)'}"


def _name(name: str) -> str:
    group, bracket, item = name.partition("[")
    if bracket and group in _ITEMS:
        return _ITEMS[group].format(item.removesuffix("]"))
    return _PARTS.get(name, _PARTS.get(group, name))


def _places(misses: list[CacheMiss], root: str) -> dict[str, str]:
    """Each place once, with the caches that were asked for it."""
    found: dict[str, list[str]] = {}
    for miss in misses:
        at = place(miss.file, miss.line, root) + (f" in {miss.function}" if miss.function else "")
        if miss.function and not miss.file:
            at = f"kernel {miss.function}"
        cache = f"{CACHE_NAMES.get(miss.cache, miss.cache)} {miss.direction}".rstrip()
        found.setdefault(at, []).append(cache)
    return {at: first_few(_counted(names)) for at, names in found.items()}


def _counted(names: list[str]) -> list[str]:
    times = {name: names.count(name) for name in dict.fromkeys(names)}
    return [name if number == 1 else f"{name} ({number} times)" for name, number in times.items()]
