"""What tells two versions of a compiled function apart, in a few words."""

from __future__ import annotations

from compilescope.knowledge.findings.changes import folded, is_number
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.recompiles._subjects import shown, size_of

_MODES = {
    "train-eval": "training and evaluation",
    "grad-mode": "with and without gradients",
    "autocast": "with and without autocast",
    "default-dtype": "two default dtypes",
    "default-device": "two default devices",
    "num-threads": "two numbers of threads",
    "inference-tensor": "with and without inference mode",
}


def version_words(cause: RecompileFinding) -> str:
    """`training and evaluation`, `the first and later sizes of x`, `with and without mask`."""
    if cause.rule in _MODES:
        return _MODES[cause.rule]
    subject = shown(folded(cause.subject) if cause.also else cause.subject)
    size = size_of(cause.subject)
    if size is not None and not {"0", "1"}.isdisjoint((cause.expected, cause.actual)):
        special = "1" if "1" in (cause.expected, cause.actual) else "0"
        return f"`{shown(size[0])}` of size {special} and of others"
    if size is not None:
        return f"the first and later sizes of `{shown(size[0])}`"
    if "None" in (cause.expected, cause.actual):
        return f"with and without `{subject}`"
    if is_number(cause.expected) and is_number(cause.actual):
        return f"the first and later values of `{subject}`"
    return f"two values of `{subject}`"
