"""Names of operators: torch's many spellings as one, and patterns over them.

An operator's one name is `aten.sort.stable`: library, name, overload. What stands in a Dynamo graph
(`torch.sort`, the method `sort`, `_operator.iadd`) is brought to the name it has in ATen, without
an overload.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache

_OPERATOR = {
    "add": "add", "sub": "sub", "mul": "mul", "matmul": "matmul", "truediv": "div",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "neg": "neg", "pos": "positive",
    "abs": "abs", "invert": "bitwise_not", "inv": "bitwise_not", "and_": "bitwise_and",
    "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq",
    "ne": "ne", "iadd": "add_", "isub": "sub_", "imul": "mul_", "imatmul": "matmul_",
    "itruediv": "div_", "ifloordiv": "floor_divide_", "imod": "remainder_", "ipow": "pow_",
    "iand": "bitwise_and_", "ior": "bitwise_or_", "ixor": "bitwise_xor_",
    "ilshift": "bitwise_left_shift_", "irshift": "bitwise_right_shift_",
}  # fmt: skip
# torch.fft.rfft is aten.fft_rfft, and so on.
_FAMILIES = {"fft": "fft_", "linalg": "linalg_", "special": "special_"}
# Where Python finds what ATen has under the same name.
_HOMES = frozenset(
    {"", "functional", "nn.functional", "Tensor", "_tensor.Tensor", "_C.TensorBase",
     "_VariableFunctionsClass", "_C._VariableFunctions", "_VF", "_C._nn", "_C._fft",
     "_C._linalg", "_C._special"}
)  # fmt: skip
SCATTERED_COPIES = frozenset(
    {"select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter"}
)
"""What AOTAutograd makes of a `copy_` into a view."""
_WILD = re.compile(r"[*?\[]")
_DUNDER = re.compile(r"^__i?(\w+?)__$")


@lru_cache(maxsize=65536)
def canonical(op: str) -> str:
    """`torch.ops.aten.sort`, `aten::sort`, `torch.sort` and the method `sort` are `aten.sort`."""
    name = op.strip().replace("::", ".").removeprefix("torch.ops.")
    first, _, rest = name.partition(".")
    if not rest:
        return f"aten.{_method(name)}"
    if first in ("_operator", "operator"):
        return f"aten.{_OPERATOR[rest]}" if rest in _OPERATOR else f"_operator.{rest}"
    if first != "torch":
        return name
    home, _, last = rest.rpartition(".")
    if home in _FAMILIES:
        return f"aten.{_FAMILIES[home]}{last}"
    return f"aten.{_method(last)}" if home in _HOMES else name


def _method(name: str) -> str:
    """`__add__` and `__iadd__` are what `+` and `+=` call."""
    match = _DUNDER.match(name)
    if match is None:
        return name
    inner = name.strip("_")
    return _OPERATOR.get(inner) or _OPERATOR.get(f"{inner}_") or name


class OpPatterns:
    """A list of patterns, asked often with the same names.

    `aten.sort.stable` means one overload. `aten.sort` means all of them, and the operator that
    works in place, `aten.sort_`. `aten._fft_*` means a family.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._exact: dict[str, str] = {}
        self._wild: list[tuple[re.Pattern[str], str]] = []
        for pattern in self.patterns:
            if _WILD.search(pattern):
                self._wild.append((re.compile(translate(_wild_name(pattern))), pattern))
            else:
                self._exact.setdefault(canonical(pattern), pattern)
        self._known: dict[str, str | None] = {}

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def match(self, op: str) -> str | None:
        """The pattern that an operator, or the target of a node, falls under."""
        if op not in self._known:
            self._known[op] = self._find(op)
        return self._known[op]

    def _find(self, op: str) -> str | None:
        spellings = _spellings(canonical(op))
        for spelling in spellings:
            if spelling in self._exact:
                return self._exact[spelling]
        for wild, pattern in self._wild:
            if any(wild.match(spelling) for spelling in (op, *spellings)):
                return pattern
        return None


def _wild_name(pattern: str) -> str:
    """`torch.nn.functional.*` is told apart by its place, so it is left as it stands."""
    name = pattern.strip().replace("::", ".").removeprefix("torch.ops.")
    if name.startswith("torch.") and name.split(".")[-2] not in _FAMILIES:
        return name
    return canonical(pattern)


def _spellings(op: str) -> list[str]:
    """What a pattern may say to mean this operator: with its overload, without, and without `_`."""
    library, name, *overload = op.split(".", 2)
    plain = f"{library}.{name}"
    spellings = [op, plain] if overload else [plain]
    if name.endswith("_") and not name.endswith("__"):
        spellings.append(plain[:-1])
    if name.endswith("_functional"):
        # What AOTAutograd makes of an operator that writes: `_native_batch_norm_legit_functional`.
        spellings.append(plain.removesuffix("_functional"))
    if name in SCATTERED_COPIES:
        spellings.append(f"{library}.copy")
    return spellings
