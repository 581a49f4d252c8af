"""What an accelerator takes: said in code, or read from a device file.

Capabilities are turned into the same constraints that the mock backend and preflight check, so that
one device has one truth.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from compilescope.backends.adapters.custom_checks import CustomCheck, UnaskedCheck
from compilescope.backends.device_files import find_device
from compilescope.backends.operator_names import (
    unknown_in_device,
    unknown_in_file,
    unknown_names,
    warn_of,
)
from compilescope.knowledge.rules.hardware.checks import constraints_of
from compilescope.knowledge.rules.hardware.constraint import Constraint
from compilescope.record.byte_counts import parse_bytes
from compilescope.record.device import (
    DTYPE_ALIASES,
    DTYPES,
    Alignment,
    Device,
    Dtypes,
    Layout,
    Memory,
    Ops,
    Shapes,
)


class AcceleratorCapabilities:
    """What one accelerator takes. Whatever is not said is not limited.

    `custom_constraints` takes constraints (`compilescope.Constraint`), which see the portable
    graph, and functions, which see each `torch.fx.Node` and return a sentence, or None.
    """

    def __init__(
        self,
        name: str = "accelerator",
        supported_dtypes: Iterable[object] = (),
        unsupported_ops: Iterable[str] = (),
        supported_ops: Iterable[str] | None = None,
        max_memory_bytes: int | str | None = None,
        *,
        requires_contiguous: bool = False,
        alignment_requirement: int = 1,
        max_tensor_dims: int | None = None,
        supports_dynamic_shapes: bool = True,
        custom_constraints: Sequence[Constraint | CustomCheck] = (),
        integer_width: int | None = None,
        narrows_integers: bool = False,
        device: Device | None = None,
    ) -> None:
        """`device` is where the other arguments start from; `from_device` finds one by name."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"name must be a string, not {name!r}")
        self.custom_checks: tuple[CustomCheck, ...] = ()
        self._custom: tuple[Constraint, ...] = ()
        self._sort_customs(custom_constraints)
        self.device = device or Device(
            name=name,
            dtypes=Dtypes(
                supported=_dtypes(supported_dtypes),
                integer_width=_at_least_one("integer_width", integer_width),
                wider_integers="narrowed" if narrows_integers else "refused",
            ),
            shapes=Shapes(
                max_rank=_at_least_one("max_tensor_dims", max_tensor_dims),
                dynamic=bool(supports_dynamic_shapes),
                alignment=_alignment(alignment_requirement),
            ),
            layout=Layout(formats=("contiguous",) if requires_contiguous else ()),
            memory=Memory(peak_bytes=_bytes(max_memory_bytes)),
            ops=Ops(
                denied=_ops("unsupported_ops", unsupported_ops),
                allowed=_ops("supported_ops", supported_ops or ()),
            ),
        )
        self._note_attributes()
        self.custom_constraints = tuple(custom_constraints)
        if narrows_integers and integer_width is None:
            raise ValueError("narrows_integers has no effect without integer_width, such as 32")
        if supported_ops is not None and not self.device.ops.allowed:
            raise ValueError(
                "supported_ops is empty, so nothing would run; leave it out to support all ops"
            )

    @classmethod
    def from_device(
        cls,
        device: Device | str | Path,
        *,
        custom_constraints: Sequence[Constraint | CustomCheck] = (),
    ) -> AcceleratorCapabilities:
        """Those of a device: one that compilescope ships (`npu-a`), a TOML file, or a Device."""
        if isinstance(device, Device):
            found = device
            warn_of(unknown_in_device(found))
        else:
            found = find_device(str(device))
            warn_of(unknown_in_file(str(device)))
        return cls(found.name, device=found, custom_constraints=custom_constraints)

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def constraints(self) -> list[Constraint]:
        """What a graph is checked against; functions among the custom ones are not in it."""
        return [*constraints_of(self.device), *self._custom]

    @property
    def portable_constraints(self) -> list[Constraint]:
        """For graphs without torch's own nodes: of custom functions nobody can tell."""
        return [*self.constraints, *map(UnaskedCheck, self.custom_checks)]

    @property
    def narrowed_to(self) -> int | None:
        """Bits to which the device narrows wider integers in silence."""
        dtypes = self.device.dtypes
        return dtypes.integer_width if dtypes.wider_integers == "narrowed" else None

    def _note_attributes(self) -> None:
        """The arguments' names, for code that asks for them."""
        device = self.device
        self.supported_dtypes = device.dtypes.supported
        self.unsupported_ops = device.ops.denied
        self.supported_ops = device.ops.allowed or None
        self.max_memory_bytes = device.memory.peak_bytes
        self.requires_contiguous = device.layout.formats == ("contiguous",)
        self.alignment_requirement = max((a.multiple for a in device.shapes.alignment), default=1)
        self.max_tensor_dims = device.shapes.max_rank
        self.supports_dynamic_shapes = device.shapes.dynamic

    def _sort_customs(self, given: Sequence[Constraint | CustomCheck]) -> None:
        for check in given:
            if isinstance(check, Constraint):
                self._custom = (*self._custom, check)
            elif isinstance(check, type) or not callable(check):
                raise TypeError(
                    f"custom_constraints contains {check!r}; it takes constraint instances "
                    "(not classes), and functions that take a node and return a sentence or "
                    "None"
                )
            else:
                self.custom_checks = (*self.custom_checks, check)

    def __repr__(self) -> str:
        return f"<AcceleratorCapabilities {self.name}: {len(self.constraints)} constraints>"


def _dtypes(given: Iterable[object]) -> tuple[str, ...]:
    if isinstance(given, (str, Mapping)):
        raise TypeError(f"supported_dtypes must be a collection of dtypes, not {given!r}")
    names = []
    for dtype in given:
        name = str(dtype).removeprefix("torch.")
        name = DTYPE_ALIASES.get(name, name)
        if name not in DTYPES:
            near = difflib.get_close_matches(name, DTYPES, 1)
            guess = f"; did you mean {near[0]}" if near else ""
            raise ValueError(f"supported_dtypes: {dtype!r} is not a dtype{guess}")
        names.append(name)
    return tuple(sorted(set(names)))


def _ops(argument: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(
            f"{argument} must be a collection of operator names, not the string {given!r}"
        )
    patterns = tuple(sorted({str(op) for op in given}))
    for problem in unknown_names(patterns, argument):
        raise ValueError(
            f"{problem}. {problem.hint} Write aten.sort for all its overloads, aten.sort.stable "
            "for one, aten._fft_* for a family.".replace("  ", " ")
        )
    return patterns


def _bytes(given: int | str | None) -> int | None:
    return None if given is None else parse_bytes(given)


def _at_least_one(argument: str, given: int | None) -> int | None:
    if given is None or (type(given) is int and given >= 1):
        return given
    raise ValueError(f"{argument} must be a whole number of at least 1, not {given!r}")


def _alignment(multiple: int) -> tuple[Alignment, ...]:
    _at_least_one("alignment_requirement", multiple)
    return (Alignment(multiple=multiple),) if multiple > 1 else ()
