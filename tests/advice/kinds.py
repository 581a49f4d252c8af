"""Which findings are of mechanical kind: a change of the source or a flag mends them, and needs no
decision of the author's. docs/advice.md tells the same lists, and a test holds it to them.
"""

from __future__ import annotations

from advice.trying import Tried

MECHANICAL_BREAKS: dict[str, str] = {
    "print-call": "a print in compiled code",
    "logging-call": "a log line or a warning in compiled code",
    "tensor-if": "an `if` that a tensor decides",
    "tensor-truth": "a tensor asked for its truth elsewhere: `and`, `assert`, a conditional",
    "tensor-while": "a `while` that a tensor decides",
    "validation-guard": "a check of tensor values that raises",
    "scalar-extraction": "`.item()`, `.tolist()`, `int()`, `float()` of a tensor",
    "dynamic-shape": "an output whose size depends on values: `nonzero`, a mask as index",
    "random-number": "a random number of Python's or NumPy's",
    "numpy-call": "a call of NumPy",
    "context-manager": "a `with` block that Dynamo does not trace",
    "rnn-module": "an LSTM, GRU or RNN",
    "backward-inside": "autograd called inside compiled code",
    "category/logging": "another call that writes",
    "category/data-dependent-branch": "another branch that a tensor decides",
    "category/scalar-extraction": "another read of a tensor's values",
    "category/dynamic-shape-operator": "another size that depends on values",
    "category/context-manager": "another `with` block",
}
MECHANICAL_RECOMPILES: dict[str, str] = {
    "size-change": "another size",
    "size-zero-one": "a size of 0 or 1",
    "size-unrolled": "a loop over a size",
    "equal-sizes": "sizes that are equal at one call only",
    "shape-condition": "a condition on sizes",
    "dtype-change": "another dtype",
    "stride-change": "another layout in memory",
    "requires-grad-change": "requires_grad at one call only",
    "grad-mode": "calls with and without gradients",
    "int-change": "another int",
    "float-change": "another float",
    "module-number": "a number on a module, a step counter",
    "optimizer-setting": "another learning rate",
    "layer-index": "layers that know their own number",
    "number-condition": "a branch on a Python number",
    "number-needed": "a number that a line needed as a constant",
    "broken-value": "a number that a graph break brought into Python",
    "aliasing": "two arguments that are one object at one call",
    "tensor-read": "a 0-dim tensor that is read as a constant",
}
OTHERS: dict[str, str] = {
    "explicit-break": "a break that the author, or torch itself, asked for",
    "outside-call": "a call of a C function or of a library that Dynamo may not trace",
    "file-access": "files read or written",
    "exception-in-finally": "exceptions that Dynamo does not trace",
    "comprehension-echo": "what an earlier break leaves behind",
    "category/...": "features of Python or torch that Dynamo does not know, by their category",
    "recompile/...": "strings, flags, modes, types, modules, objects: which to do is a decision",
    "failure/...": "compilations that failed in a backend, or at a limit",
}


def is_mechanical(tried: Tried) -> bool:
    """A finding in a file of the program: an installed package is not the author's to change."""
    if not tried.own:
        return False
    if tried.kind == "recompile":
        return tried.rule.removeprefix("recompile/") in MECHANICAL_RECOMPILES
    # A break that fullgraph=True made an error is of the same kind.
    return tried.rule.removeprefix("failure/") in MECHANICAL_BREAKS
