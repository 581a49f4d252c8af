"""Examples of graph breaks, the ids that no program of a user can reach, and how often each is met:
counted once over models and programs, kept in met.json.

An example is `examples/gbNNNN.py`, a plain program of a few lines. Its docstring says what breaks
and why. `f` breaks at the line with the comment `# breaks here`; `fixed`, where there is one, does
the same without a break; `inputs()` makes their arguments. `CONFIG` is Dynamo's config for `f`,
`FIXED_CONFIG` that of the fixed form (of `f` itself where there is no `fixed`). `BACKEND` and
`FULLGRAPH` are for torch.compile; `ALSO` names other ids that break along. An id that needs a
special call has a `run()` that makes it, and may have a `run_fixed()`.
Here they are read as text, never imported: they need torch.

`benchmarks/registry_counts.py` makes the file; it says what was counted. Nothing is sent or
gathered from users.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from compilescope.base.bundles import Bundled, bundled
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.table import normal_id

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = Path(__file__).with_name("examples")
MARK = "# breaks here"
_UNREACHABLE = Path(__file__).with_name("unreachable.toml")
_FIXED = {"fixed", "run_fixed"}
_SETTINGS = ("CONFIG", "FIXED_CONFIG", "ALSO", "BACKEND", "FULLGRAPH")

Kind = Literal["internal", "hardware", "version", "process"]


class ExampleFile(msgspec.Struct, frozen=True, kw_only=True):
    """An example as its file says it."""

    gb_id: str
    description: str
    source: str
    path: Bundled
    break_line: int
    """Of the line that breaks."""
    broken: str
    """The part of the source that breaks: `f` or `run`, and what they need."""
    fixed: str = ""
    """The part that does not: `fixed`, and what it needs besides."""
    has_fixed: bool = False
    """There is a form that does not break: `fixed`, or `f` under another config."""
    config: dict[str, Any] = {}
    fixed_config: dict[str, Any] = {}
    also: tuple[str, ...] = ()
    """Other ids that break with it: it follows from them, or they from it."""
    backend: str = "eager"
    fullgraph: bool = False

    @property
    def output(self) -> str | None:
        """What `compilescope explain` prints for it; None where nobody has written it down."""
        try:
            return output_of(self.path).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None


class Unreachable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An id that no program of a user can break with."""

    kind: Kind
    """Only torch's own code gets there, or a machine, another version or a state of the process
    that a small program does not have."""
    reason: str


def output_of(path: Bundled) -> Bundled:
    """Where the output of the example at `path` is written down."""
    return path.parent / "outputs" / f"{path.stem}.txt"


@lru_cache(maxsize=1)
def load_examples() -> dict[str, ExampleFile]:
    """The examples that come with this version, by id."""
    return read_examples(EXAMPLES)


def read_examples(folder: Path) -> dict[str, ExampleFile]:
    """The examples of a folder, by id."""
    paths = {path.name: path for path in bundled(folder).iterdir()}
    wanted = sorted(name for name in paths if name.startswith("gb") and name.endswith(".py"))
    found = (read_example(paths[name]) for name in wanted)
    return {example.gb_id: example for example in found}


def read_example(path: Bundled) -> ExampleFile:
    """Read and check the file of one example."""
    gb_id = normal_id(path.stem)
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        raise ToolError(f"The example {path} could not be read: {error}.") from None
    if gb_id is None or path.name != f"{gb_id.lower()}.py":
        raise ToolError(f"The example {path} is not named after an id, like gb0124.py.")
    for problem in _problems(tree, source):
        raise ToolError(f"The example {path} {problem}.")
    settings = _settings(tree, path)
    names = {name for node in tree.body for name in _bound(node)}
    broken, fixed = _parts(tree)
    return ExampleFile(
        gb_id=gb_id,
        description=" ".join((ast.get_docstring(tree) or "").split()),
        source=source,
        path=path,
        break_line=_marked(source)[0],
        broken=_text(tree, source, broken),
        fixed=_text(tree, source, fixed),
        has_fixed=bool(_FIXED & names or "FIXED_CONFIG" in names),
        **{name.lower(): value for name, value in settings.items()},
    )


def _problems(tree: ast.Module, source: str) -> Iterator[str]:
    names = {name for node in tree.body for name in _bound(node)}
    if not ast.get_docstring(tree):
        yield "has no docstring"
    if not {"f", "run"} & names:
        yield "has neither f nor run()"
    if "inputs" not in names and "run" not in names:
        yield "has no inputs()"
    marked = _marked(source)
    if len(marked) != 1:
        yield f"has {len(marked)} lines with the comment {MARK!r} instead of one"


def _marked(source: str) -> list[int]:
    lines = enumerate(source.splitlines(), 1)
    return [number for number, line in lines if line.rstrip().endswith(MARK)]


def _settings(tree: ast.Module, path: Bundled) -> dict[str, Any]:
    """The settings that are there; their values are plain."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in _SETTINGS:
                try:
                    found[name] = ast.literal_eval(node.value)
                except ValueError:
                    raise ToolError(
                        f"In the example {path}, {name} is not a plain value."
                    ) from None
    return found


def _parts(tree: ast.Module) -> tuple[set[ast.stmt], set[ast.stmt]]:
    """What breaks, and what only the fixed form needs."""
    needed = _needed(tree, {"f", "run", "inputs"})
    only_fixed = _needed(tree, _FIXED) - needed
    settings = {node for node in tree.body if {"inputs", *_SETTINGS} & set(_bound(node))}
    words = {node for node in tree.body if isinstance(node, ast.Expr) and _is_words(node)}
    return set(tree.body) - only_fixed - settings - words, only_fixed


def _needed(tree: ast.Module, roots: set[str]) -> set[ast.stmt]:
    """The statements of the file that these names rest on, and those that act on them."""
    wanted = set(roots)
    imports = {name for node in tree.body if _is_import(node) for name in _bound(node)}
    found: set[ast.stmt] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for node in tree.body:
            # A registration is needed for what it does to a name, not by its own.
            acts_on = _acts_on(node) - imports
            if node not in found and (wanted & set(_bound(node)) or wanted & acts_on):
                found.add(node)
                wanted |= _names(node)
    return found


def _acts_on(node: ast.stmt) -> set[str]:
    """The names that a statement does something to: a bare call, or a decorator."""
    if isinstance(node, ast.Expr):
        return _names(node)
    decorators = getattr(node, "decorator_list", [])
    return {name for each in decorators for name in _names(each)}


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement of the file makes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.Try):
        return [name for each in (*node.body, *node.orelse) for name in _bound(each)]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [name for target in targets if target is not None for name in _names(target)]


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _is_words(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant)


def _text(tree: ast.Module, source: str, chosen: set[ast.stmt]) -> str:
    """The chosen statements as they stand, with the empty lines above them."""
    lines = source.splitlines()
    parts: list[str] = []
    for node in tree.body:
        if node not in chosen:
            continue
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(each.lineno for each in decorators)]) - 1
        above = start
        while above > 0 and not lines[above - 1].strip():
            above -= 1
        parts += lines[above if parts else start : node.end_lineno]
    return "\n".join(parts) + "\n" if parts else ""


@lru_cache(maxsize=1)
def load_unreachable() -> dict[str, Unreachable]:
    """The ids that cannot be reached, by id."""
    return read_unreachable(_UNREACHABLE)


def read_unreachable(path: Path) -> dict[str, Unreachable]:
    """Read and check a list of ids that cannot be reached."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        found = msgspec.convert(data, dict[str, Unreachable])
    except OSError as error:
        raise ToolError(f"{path} could not be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ToolError(f"{path} is not valid: {error}.") from None
    for gb_id, entry in found.items():
        if normal_id(gb_id) != gb_id or not entry.reason.strip():
            raise ToolError(f"{path} is not valid: {gb_id} is not an id, or has no reason.")
    return found


_MET = Path(__file__).with_name("met.json")


class BreakCount(msgspec.Struct, frozen=True):
    """Where one id was met."""

    models: int = 0
    """Model classes of transformers that met it."""
    programs: int = 0
    """Programs of the zoo and the examples that met it."""
    named: tuple[str, ...] = ()
    """Some of the models."""


class BreakCounts(msgspec.Struct, frozen=True):
    """The counts, and what they were taken over."""

    torch: str = ""
    transformers: str = ""
    models: int = 0
    """How many model classes compiled."""
    programs: int = 0
    ids: dict[str, BreakCount] = {}

    def rank(self, gb_id: str) -> tuple[int, int]:
        """What sorts ids: those that most models met first, then those of most programs."""
        found = self.ids.get(gb_id, BreakCount())
        return -found.models, -found.programs


@lru_cache(maxsize=1)
def load_break_counts() -> BreakCounts:
    return msgspec.json.decode(_MET.read_bytes(), type=BreakCounts)
