"""A look into one of torch's caches on disk, and its key, part by part, as torch lists them.

One line a part: `[hash] inductor_config[max_autotune]: False`. Of each the hash is kept, which
tells whether two runs agree in it, and the value where it is short and plain.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, cast

import msgspec

from compilescope.base.patterns import late
from compilescope.record.body import EventBody

_LINE = late(r"\[(\w{8,64})\] ([A-Za-z_]\w{0,80}(?:\[[\w.]{0,120}\])?): ")
_TENSOR = late(
    r"TensorMetadata\(dtype=torch\.(?P<dtype>\w+), shape=(?:torch\.Size\()?[\[(](?P<shape>[^\])]*)"
    r"[\])]\)?, stride=[\[(](?P<stride>[^\])]*?),?[\])], device=device\(type='(?P<device>\w+)'"
    r"(?:, index=(?P<index>\d+))?"
)
_PLAIN = late(r"(?!.*\b0x)[\w.+\-=,()\[\]{}:' ]*")
"""No path, no address of an object, no text of several lines."""
_MOST_LETTERS = 80
"""Of a value. Chosen: a line."""
_MOST_REASON = 500
"""Letters of a reason to bypass. Chosen: some of torch's quote an object at length."""
_DIGITS = 12
"""Of torch's hash, 5 bits each. Chosen: one in 10^18 parts that differ would seem to agree."""
_SHORT = 200
"""Letters of a line that is remembered. Chosen: most settings."""
_MOST_PARTS = 4096
"""Chosen: more inputs than the largest models have parameters; the rest is one part."""


CacheOutcome = Literal["hit", "miss", "bypass"]
RemoteCacheName = Literal[
    "remote_fx_graph", "remote_aot_autograd", "remote_autotune", "remote_bundled_autotune",
    "remote_pgo",
]  # fmt: skip
_REMOTE: dict[str, RemoteCacheName] = {
    "RemoteFxGraphCache": "remote_fx_graph",
    "RemoteAOTAutogradCache": "remote_aot_autograd",
    "RemoteAutotuneCache": "remote_autotune",
    "RemoteBundledAutotuneCache": "remote_bundled_autotune",
    "RemoteDynamoPGOCache": "remote_pgo",
}
"""Torch's classes."""


class CacheAccess(EventBody, frozen=True):
    """A look into one of the caches of PyTorch and Triton, on disk or on another machine."""

    cache: Literal["fx_graph", "aot_autograd", "triton"] | RemoteCacheName
    outcome: CacheOutcome
    key: str = ""
    reason: str = ""
    """Why the cache was bypassed, in torch's words."""
    status: str = ""
    """Torch's closer word: `full_miss`, or `guard_miss` where entries with this key do not fit."""
    parts: str | None = None
    """Artifact: what the key was made of for this graph alone, as JSON (KeyParts)."""
    settings: str | None = None
    """Artifact: the compiler's settings in the key, which most graphs of a process share."""
    name: str = ""
    """Of a kernel, where the look was for one kernel and not for a graph."""


class KeyPart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing that the key was made of."""

    name: str
    """Torch's: `gm`, `example_inputs[0]`, `inductor_config[max_autotune]`."""
    digest: str = ""
    """The start of torch's hash of it; empty in a redacted run."""
    value: str = ""
    """Where it is short and plain; of a tensor its dtype, shape, strides and device."""

    @property
    def group(self) -> str:
        """`inductor_config`"""
        return self.name.partition("[")[0]

    @property
    def item(self) -> str:
        """`max_autotune`"""
        return self.name.partition("[")[2].removesuffix("]")


class KeyParts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parts of one key, in torch's order."""

    parts: tuple[KeyPart, ...] = ()


class SplitKey(msgspec.Struct, frozen=True):
    """A key's parts: those of its graph, and the settings that other graphs have as well."""

    graph: KeyParts = KeyParts()
    settings: KeyParts = KeyParts()


def cache_access(
    cache: str, outcome: str, info: Mapping[str, Any], artifact: Callable[[str, str], str] | None
) -> CacheAccess:
    """From what torch notes of a look into a cache. `artifact` keeps a text; None: none is."""
    split = split_key(info.get("components")) if artifact is not None else SplitKey()

    def kept(parts: KeyParts) -> str | None:
        return artifact(encode_key(parts), "json") if artifact and parts.parts else None

    return CacheAccess(
        "fx_graph" if cache == "fx_graph" else "aot_autograd",
        cast("CacheOutcome", outcome),
        key=str(info.get("key") or ""),
        reason=str(info.get("cache_bypass_reason") or "")[:_MOST_REASON],
        status=str(info.get("cache_status_detailed") or "")[:_MOST_LETTERS],
        parts=kept(split.graph),
        settings=kept(split.settings),
    )


def remote_cache(class_name: str) -> RemoteCacheName | None:
    """None for what is no cache on another machine."""
    return _REMOTE.get(class_name.removeprefix("Fb"))


def key_part(name: str, text: str, shown: str | None = None) -> KeyPart:
    """Of a key whose parts are not listed by who makes it. `shown`: what a reader sees of it, where
    that is not the text."""
    digest = blake2b(text.encode()).hexdigest()[:_DIGITS]
    return KeyPart(name, digest, _shown(text if shown is None else shown, 0))


def split_key(lines: Any) -> SplitKey:
    """From torch's list of a key's components; whatever is not such a line is left out."""
    graph: list[KeyPart] = []
    settings: list[KeyPart] = []
    for line in lines if isinstance(lines, (list, tuple)) else ():
        if isinstance(line, str):
            found = _read_short(line) if len(line) <= _SHORT else _read(line)
            if found is not None:
                part, is_setting = found
                (settings if is_setting else graph).append(part)
    return SplitKey(_bounded(graph), _bounded(settings))


def _read(line: str) -> tuple[KeyPart, bool] | None:
    """With whether it is a setting."""
    found = _LINE.match(line)
    if found is None:
        return None
    part = KeyPart(found[2], found[1][:_DIGITS], _shown(line, found.end()))
    return part, "config" in part.group and part.item != ""


_read_short = lru_cache(1 << 12)(_read)
"""Most lines are settings, which the keys of a process have in common."""


def encode_key(parts: KeyParts) -> str:
    return _encoder.encode(parts).decode()


def decode_key(text: str) -> KeyParts:
    """Raises msgspec.DecodeError on whatever it cannot read."""
    try:
        return _decoder.decode(text)
    except (RecursionError, UnicodeError) as error:
        raise msgspec.DecodeError(str(error)) from None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(KeyParts)


def _shown(line: str, start: int) -> str:
    tensor = _TENSOR.match(line, start)
    if tensor is not None:
        device = tensor["device"] + (f":{tensor['index']}" if tensor["index"] else "")
        return f"{tensor['dtype']}[{tensor['shape']}][{tensor['stride']}]{device}"
    text = line[start : start + _MOST_LETTERS + 1]
    return text if len(text) <= _MOST_LETTERS and _PLAIN.fullmatch(text) else ""


def _bounded(parts: Sequence[KeyPart]) -> KeyParts:
    kept, rest = parts[:_MOST_PARTS], parts[_MOST_PARTS:]
    return KeyParts((*kept, _rest(rest)) if rest else tuple(kept))


def _rest(parts: Iterable[KeyPart]) -> KeyPart:
    told = "".join(f"{part.name}{part.digest}" for part in parts)
    return KeyPart("others", blake2b(told.encode()).hexdigest()[:_DIGITS])
