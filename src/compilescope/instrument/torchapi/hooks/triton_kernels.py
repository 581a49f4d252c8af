"""Looks into Triton's own cache, for kernels that are compiled in this process.

Triton makes a key, asks its cache for it, and builds the kernel's IR only where the cache has
nothing. All three pass here, in the thread that compiles. What Inductor's worker processes compile
does not: they are not watched.
"""

from __future__ import annotations

import functools
import re
import sys
from hashlib import blake2b
from typing import Any

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.hook import Hook, HookedCall, KernelLook, Watch
from compilescope.record.cache_key import CacheAccess, KeyPart, KeyParts, encode_key, key_part

_MODULE = "triton.compiler.compiler"
_LOSES = "looks into Triton's cache"


def _begin_look(watch: Watch, call: HookedCall) -> None:
    source, backend, options = call["src"], call["backend"], call["backend_options"]
    if not hasattr(source, "fn"):
        watch.thread.kernel = None  # A file of IR, which has no key of this kind.
        return
    parts = [
        key_part("triton_version", _own_key(source, str(call.result)), _version()),
        *_source_parts(source),
        key_part("triton_target", str(getattr(backend, "target", ""))),
        key_part("triton_backend", str(backend.hash()), _release(str(backend.hash()))),
        *_named("triton_options", _options(options)),
        *_named("triton_environment", call["env_vars"]),
    ]
    watch.thread.kernel = KernelLook(source, KeyParts(tuple(parts)))


def _note_build(watch: Watch, call: HookedCall) -> None:
    look = watch.thread.kernel
    if look is not None and look.source is call.args[0]:
        look.built = True


def _end_look(watch: Watch, call: HookedCall) -> None:
    look, watch.thread.kernel = watch.thread.kernel, None
    if look is None or look.source is not call["src"]:
        return
    body = CacheAccess(
        "triton",
        "miss" if look.built else "hit",
        key=str(call["hash"]),
        name=str(look.source.name),
        parts=watch.sink.artifact(encode_key(look.parts), "json"),
    )
    watch.sink.emit(body, compile_id=current_compile_id())


def _own_key(source: Any, key: str) -> str:
    """The version and a hash of Triton's own files: the key begins with them."""
    return key.partition(f"-{source.hash()}")[0]


def _version() -> str:
    return str(getattr(sys.modules.get("triton"), "__version__", ""))


def _release(version: str) -> str:
    """Of what `ptxas --version` prints."""
    found = re.search(r"release [\d.]+, V[\d.]+", version)
    return found[0] if found is not None else ""


def _source_parts(source: Any) -> list[KeyPart]:
    """What `ASTSource.hash` is made of (Triton 3.6 to 3.9); arguments by their place."""
    kernel = source.fn
    constants = {".".join(map(str, place)): each for place, each in source.constants.items()}
    return [
        key_part("triton_source", str(kernel.cache_key), ""),
        *_named("triton_signature", dict(enumerate(map(_type, source.signature.values())))),
        *_named("triton_constants", constants),
        key_part("triton_attributes", str(source.attrs)),
    ]


def _options(options: Any) -> dict[str, Any]:
    """Libraries count by what is in them, wherever they lie."""
    found = dict(getattr(options, "__dict__", {}))
    libraries = found.pop("extern_libs", None) or ()
    return found | {f"extern_libs.{name}": _content(str(path)) for name, path in libraries}


@functools.cache
def _content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return blake2b(file.read()).hexdigest()
    except OSError as error:
        let_through(error)
        return path


def _type(text: Any) -> str:
    return str(text).replace("*", "pointer to ")


def _named(group: str, values: Any) -> list[KeyPart]:
    return [
        key_part(f"{group}[{name}]", str(getattr(value, "cache_key", value)))
        for name, value in sorted(values.items(), key=lambda pair: str(pair[0]))
    ]


HOOKS = (
    Hook(
        id="triton-keys",
        module=_MODULE,
        target="get_cache_key",
        loses=_LOSES,
        after=_begin_look,
    ),
    Hook(
        id="triton-builds",
        module=_MODULE,
        target="ASTSource.make_ir",
        loses=_LOSES,
        before=_note_build,
    ),
    Hook(
        id="triton-kernels",
        module=_MODULE,
        target="CompiledKernel.__init__",
        loses=_LOSES,
        after=_end_look,
    ),
)
