"""A name for a cause that survives edits elsewhere in the file, other machines and other ranks.

Rule + file relative to the script's root (or to the package for installed code) + function +
normalised source line. Never the line number.
"""

from __future__ import annotations

import functools
import os
from hashlib import blake2b

from compilescope.base.patterns import late
from compilescope.record.stack import Frame

_PACKAGE = late(r"^.*[/\\](?:site|dist)-packages[/\\]")


@functools.lru_cache(1 << 15)
def relative_file(file: str, root: str) -> str:
    """`file` as it would be called on another machine."""
    if _PACKAGE.match(file):
        return _PACKAGE.sub("", file).replace(os.sep, "/")
    inside = root.rstrip(os.sep) + os.sep
    if root and file.startswith(inside):
        rest = file[len(inside) :].replace(os.sep, "/")
        # Plain names need no walk through both paths, which takes most of a fingerprint's time.
        is_plain = rest and "//" not in rest and "/." not in f"/{rest}"
        return rest if is_plain else os.path.relpath(file, root).replace(os.sep, "/")
    return os.path.basename(file)


def normalised(source: str) -> str:
    """The line with its spacing evened out."""
    return " ".join(source.split())


@functools.lru_cache(1 << 12)
def fingerprint(rule: str, frame: Frame | None, root: str) -> str:
    """Sixteen hex digits."""
    parts = [rule]
    if frame is not None:
        parts += [relative_file(frame.file, root), frame.function, normalised(frame.source)]
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=8).hexdigest()
