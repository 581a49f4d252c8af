"""An argument of a different type."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import (
    called,
    cut,
    inside,
    reader,
    shown,
    value_kind,
    wrapper_note,
)

_SORTS = ("bool", "int", "float", "str", "tensor")
_WORDS = {"tensor": "torch.Tensor"}


def _types(miss: Miss) -> tuple[str, str] | None:
    """(at compilation, now), where the two differ in type."""
    if inside(miss.cause.subject, "type"):
        return cut(miss.cause.expected) or "one type", cut(miss.cause.actual) or "another type"
    was, now = value_kind(miss.cause.expected), value_kind(miss.cause.actual)
    if was not in _SORTS or not miss.cause.actual or miss.cause.kind == "SHAPE":
        return None
    if now in _SORTS and was != now:
        return _WORDS.get(was, was), _WORDS.get(now, now)
    if now == "other" and was != "str" and not _is_mark(miss):
        return was, _type_told(miss.cause.actual)
    return None


def _type_told(value: str) -> str:
    """The type of a value that is told by its items or as an object."""
    brackets = {"[": "list", "(": "tuple", "{": "dict" if ": " in value or value == "{}" else "set"}
    return brackets.get(value[0]) or cut(value.removeprefix("<").removesuffix(" object>"))


def _is_mark(miss: Miss) -> bool:
    return miss.cause.subject.startswith(("hasattr(", "___"))


def _name(miss: Miss) -> str:
    return shown(inside(miss.cause.subject, "type") or miss.cause.subject)


def _applies(miss: Miss) -> bool:
    return _types(miss) is not None


def _why(miss: Miss) -> str:
    was, now = _types(miss) or ("another type", "this one")
    if was == now:
        return (
            f"`{_name(miss)}` is of type {now}, but not of the same class as when `{called(miss)}` "
            "was compiled: two classes of that name exist, one of them redefined (inside a "
            f"function, or by a reload).{wrapper_note(miss)}"
        )
    return (
        f"`{_name(miss)}` was of type {was} when `{called(miss)}` was compiled and is of type "
        f"{now} now; {reader(miss)} reads it. Python code behaves differently for different types, "
        f"so each has its own graph.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    was, now = _types(miss) or ("", "")
    name = _name(miss)
    if was == now:
        return [
            source(
                f"Define the class `{now}` once, at module level, so that every `{name}` has the "
                "same class."
            )
        ]
    return [
        source(
            f"Create every `{name}` as one type, `{was}` or `{now}`, if one can replace the other."
        ),
        leave(miss, "type"),
    ]


RULE = GuardRule(
    id="type-change",
    order=320,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(xs):
    return xs[0] * 2

print(f([torch.ones(3)]))
print(f((torch.ones(3),)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(xs):
    return xs[0] * 2

print(f([torch.ones(3)]))
print(f([torch.ones(3)]))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, v):
    return x * v

f(torch.ones(3), 2)
f(torch.ones(3), 2.5)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, v):
    return x * v

print(f(torch.ones(3), 2.5))
print(f(torch.ones(3), torch.tensor(2.5)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, v):
    return x * v

print(f(torch.ones(3), torch.tensor(2.5)))
print(f(torch.ones(3), torch.tensor(2.5)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, options):
    return x * options.scale

def run():
    class Options:
        scale = 2
    print(f(torch.ones(3), Options()))
    return Options

kept = [run(), run()]
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, options):
    return x * options.scale

class Options:
    scale = 2

for _ in range(2):
    print(f(torch.ones(3), Options()))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, scale):
    return x * scale

f(torch.ones(3), torch.tensor(2.0))
f(torch.ones(3), 3.0)
""",
        ),
    ),
)
