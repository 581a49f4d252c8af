"""What each generated kernel reads and writes, from Inductor's output code: sizes of its tensors,
times the bytes of an element. As torch's own estimate it counts each tensor once, and one that is
changed in place twice; of a tensor that is only partly read it is too much."""

from __future__ import annotations

from math import prod

from compilescope.patterns import late

_SIZE = r"\(([\d,\s]*)\)"
_CHECKED = late(rf"\s*assert_size_stride\((\w+), {_SIZE}")
_MADE = late(rf"\s*(\w+) = empty_strided\w*\({_SIZE}")
_RENAMED = late(r"\s*(\w+) = (\w+)(?:;|$)")
_VIEWED = late(rf"\s*(\w+) = reinterpret_tensor\(\w+, {_SIZE}")
_CALL = late(r"\s*((?:triton|cpp)_\w+)(?:\.run)?\((.*)\)\s*$")
_TRITON = late(r"(\w+) = async_compile\.triton\(")
_CPP = late(r"(\w+) = async_compile\.cpp_pybinding\(")
_SIGNATURE = late(r"'signature': \{([^}]*)\}")
_POINTER = late(r"'(\w+)': '\*(\w+)'")
_CPP_POINTER = late(r"(?:const )?(\w+)\s*\*\s*(\w+)")
_VIEW = late(rf"reinterpret_tensor\(\w+, {_SIZE}")
_BYTES = {
    "fp64": 8, "i64": 8, "u64": 8, "fp32": 4, "i32": 4, "u32": 4, "fp16": 2, "bf16": 2, "i16": 2,
    "i8": 1, "u8": 1, "i1": 1, "fp8e4nv": 1, "fp8e5": 1,
    "double": 8, "int64_t": 8, "float": 4, "int32_t": 4, "half": 2, "bfloat16": 2, "int16_t": 2,
    "int8_t": 1, "uint8_t": 1, "bool": 1,
}  # fmt: skip
"""As Triton and C++ call the dtypes."""

Pointers = list[tuple[str, int]]


def kernel_traffic(text: str) -> dict[str, float]:
    """Kernel -> bytes of all its calls in this code. Kernels with sizes that only the run knows
    are left out."""
    pointers = _pointers(text)
    sizes: dict[str, int] = {}
    found: dict[str, float] = {}
    unknown: set[str] = set()
    for line in text.splitlines():
        for pattern in (_CHECKED, _MADE, _VIEWED):
            made = pattern.match(line)
            if made is not None:
                sizes[made[1]] = _numel(made[2])
        renamed = _RENAMED.match(line)
        if renamed is not None and renamed[2] in sizes:
            sizes[renamed[1]] = sizes[renamed[2]]
        call = _CALL.match(line)
        if call is None or call[1] not in pointers:
            continue
        moved = _moved(_arguments(call[2]), pointers[call[1]], sizes)
        if moved is None:
            unknown.add(call[1])
        else:
            found[call[1]] = found.get(call[1], 0.0) + moved
    return {kernel: moved for kernel, moved in found.items() if kernel not in unknown}


def _moved(arguments: list[str], pointers: Pointers, sizes: dict[str, int]) -> float | None:
    total = 0.0
    for argument, (name, item) in zip(arguments, pointers, strict=False):
        view = _VIEW.match(argument)
        numel = _numel(view[1]) if view is not None else sizes.get(argument)
        if numel is None:
            return None
        total += numel * item * (2 if name.startswith("in_out") else 1)
    return total


def _pointers(text: str) -> dict[str, Pointers]:
    """Kernel -> its arguments that are tensors, which come first, with the bytes of an element."""
    found: dict[str, Pointers] = {}
    kernel = ""
    for line in text.splitlines():
        triton, cpp = _TRITON.match(line), _CPP.match(line)
        if triton is not None:
            kernel = triton[1]
        elif cpp is not None:
            kernel = cpp[1]
            found[kernel] = []
        elif line.startswith("{"):
            kernel = ""
        elif kernel in found:
            named = ((m[2], m[1]) for m in _CPP_POINTER.finditer(line))
            found[kernel] += [(name, _BYTES.get(dtype, 0)) for name, dtype in named]
        elif kernel and (signature := _SIGNATURE.search(line)) is not None:
            named = ((m[1], m[2]) for m in _POINTER.finditer(signature[1]))
            found[kernel] = [(name, _BYTES.get(dtype, 0)) for name, dtype in named]
            kernel = ""
    return found


def _arguments(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    found, depth, at = [], 0, 0
    for index, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            found.append(text[at:index].strip())
            at = index + 1
    return [*found, text[at:].strip()]


def _numel(size: str) -> int:
    return prod(int(number) for number in size.replace(",", " ").split())
