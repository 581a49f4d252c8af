"""Which findings are of mechanical kind: a change of the source or a flag mends them, and needs no
decision of the author's. docs/inside/advice.md tells the same lists, and a test holds it to them.
"""

from __future__ import annotations

from advice.trying import Tried

MECHANICAL_BREAKS: dict[str, str] = {
    "print-call": "a print in compiled code",
    "logging-call": "a log line or a warning in compiled code",
    "tensor-if": "an `if` on a tensor",
    "tensor-truth": "a tensor used as a truth value elsewhere: `and`, `assert`, a conditional "
    "expression",
    "tensor-while": "a `while` on a tensor",
    "validation-guard": "a check of tensor values that raises",
    "scalar-extraction": "`.item()`, `.tolist()`, `int()`, `float()` of a tensor",
    "dynamic-shape": "an output whose size depends on values: `nonzero`, indexing with a mask",
    "random-number": "a random number from Python or NumPy",
    "numpy-call": "a NumPy call",
    "context-manager": "a `with` block that Dynamo does not trace",
    "rnn-module": "an LSTM, GRU or RNN",
    "backward-inside": "autograd called inside compiled code",
    "category/logging": "another call that writes output",
    "category/data-dependent-branch": "another branch on a tensor",
    "category/scalar-extraction": "another read of a tensor's values",
    "category/dynamic-shape-operator": "another size that depends on values",
    "category/context-manager": "another `with` block",
}
MECHANICAL_RECOMPILES: dict[str, str] = {
    "size-change": "a different size",
    "size-zero-one": "a size of 0 or 1",
    "size-unrolled": "a loop over a size",
    "equal-sizes": "sizes that are equal in one call only",
    "shape-condition": "a condition on sizes",
    "dtype-change": "a different dtype",
    "stride-change": "a different memory layout",
    "requires-grad-change": "requires_grad in one call only",
    "grad-mode": "calls with and without gradients",
    "int-change": "a different int",
    "float-change": "a different float",
    "module-number": "a number on a module, such as a step counter",
    "optimizer-setting": "a different learning rate",
    "layer-index": "layers that store their own index",
    "number-condition": "a branch on a Python number",
    "number-needed": "a number that a line needed as a constant",
    "broken-value": "a number that a graph break brought into Python",
    "aliasing": "two arguments that are the same object in one call",
    "tensor-read": "a 0-dim tensor that is read as a constant",
}
OTHERS: dict[str, str] = {
    "explicit-break": "a break that the author, or torch itself, asked for",
    "outside-call": "a call to a C function, or to a library that Dynamo does not trace",
    "symbolic-value": "a symbolic size given where an operator takes a plain value",
    "file-access": "reading or writing files",
    "exception-in-finally": "exceptions that Dynamo does not trace",
    "own-raise": "the program's own `raise`",
    "comprehension-echo": "a side effect of an earlier break",
    "category/...": "features of Python or torch that Dynamo does not support, by category",
    "recompile/...": "strings, flags, modes, types, modules, objects: the choice is a decision",
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
