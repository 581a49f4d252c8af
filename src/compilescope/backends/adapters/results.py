"""What `compile` of a user's adapter returns for one island: how it went, and what runs it.

A result that makes no sense is refused when it is made, in the adapter's own stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any


class CompilationStatus(str, Enum):
    """How it went. The words themselves do as well: `CompilationResult("failed")`."""

    SUCCESS = "success"
    """`compiled_fn` runs the whole island on the device."""
    PARTIAL = "partial"
    """`compiled_fn` runs it, a part of it elsewhere: `warnings` should say which."""
    FALLBACK = "fallback"
    """`compiled_fn` or `fallback_fn` runs it, on the host."""
    FAILED = "failed"
    """`fallback_fn` runs it; without one, the adapter's `fallback` does."""


class CompilationResult:
    """One island, compiled or not."""

    def __init__(
        self,
        status: CompilationStatus | str | None = None,
        compiled_fn: Callable[..., Any] | None = None,
        violations: Iterable[object] = (),
        warnings: Iterable[str] = (),
        *,
        metadata: Mapping[str, Any] | None = None,
        fallback_fn: Callable[..., Any] | None = None,
    ) -> None:
        """Without a `status` it is a success if there is a `compiled_fn`, else a failure.

        `violations` are what the compiler has against the island, in its own words.
        """
        if status is None:
            status = "failed" if compiled_fn is None else "success"
        try:
            self.status = CompilationStatus(status)
        except ValueError:
            known = ", ".join(each.value for each in CompilationStatus)
            raise ValueError(f"status is {status!r}; it must be one of {known}") from None
        for name, function in (("compiled_fn", compiled_fn), ("fallback_fn", fallback_fn)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function, not {type(function).__name__}")
        for name, words in (("violations", violations), ("warnings", warnings)):
            if isinstance(words, str):
                raise TypeError(f"{name} must be a list, not the string {words!r}")
        self.compiled_fn = compiled_fn
        self.violations = tuple(violations)
        self.warnings = tuple(str(warning) for warning in warnings)
        self.metadata = dict(metadata or {})
        self.fallback_fn = fallback_fn
        if self.success and compiled_fn is None:
            raise ValueError(
                "status is success, but there is no compiled_fn: give one, or use status='failed'"
            )

    @property
    def success(self) -> bool:
        return self.status is CompilationStatus.SUCCESS

    def get_callable(self) -> Callable[..., Any] | None:
        """What runs the island; None: the adapter's fallback does."""
        # By identity: a module with a length may be false.
        if self.status is CompilationStatus.FAILED or self.compiled_fn is None:
            return self.fallback_fn
        return self.compiled_fn

    @property
    def why(self) -> str:
        """In the adapter's own words, why it is less than a success."""
        return "; ".join(map(str, (*self.violations, *self.warnings)))

    def __repr__(self) -> str:
        return f"<CompilationResult {self.status.value}>"
