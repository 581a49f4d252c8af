"""Pages of the reference that are made from the code, so that they can't differ from it.

Nothing here imports torch: commands come from click, the Python names from their source, rules,
fixes, constraints and devices from their tables, the architecture from CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

import compilescope
from compilescope.apps.cli.main import GROUPS, group
from compilescope.backends.device_files import device_path, shipped_devices
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.knowledge.registry.taxonomy import load_taxonomy
from compilescope.knowledge.rules.causes.explanations import break_rules, guard_rules
from compilescope.knowledge.rules.hardware.checks import all_rules
from compilescope.knowledge.source.examples import Example

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(compilescope.__file__).parent
_MAP = re.compile(r"(?:^    \S.*\n)+", re.M)


def generated_pages() -> dict[str, str]:
    """Path below docs/ -> Markdown."""
    return {
        "reference/commands.md": commands(),
        "reference/python.md": python(),
        "reference/rules.md": rules(),
        "reference/fixes.md": fixes(),
        "reference/constraints.md": constraints(),
        "reference/shipped-devices.md": devices(),
        "inside/architecture.md": architecture(),
    }


# Commands


def commands() -> str:
    top = click.Context(group, info_name="compilescope")
    parts = [
        "# Commands",
        "What `compilescope COMMAND --help` prints. Every command that prints results takes "
        "`--json` ([JSON](json.md)).",
    ]
    for heading, names in GROUPS.items():
        parts.append(f"## {heading}")
        for name in names:
            command = group.get_command(top, name)
            assert command is not None, name
            parts += _helps(command, click.Context(command, info_name=name, parent=top), level=3)
    return "\n\n".join(parts) + "\n"


def _helps(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{context.command_path}`"
    context.terminal_width = 100
    yield _fenced("text", command.get_help(context))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            inner = click.Context(below, info_name=name, parent=context)
            yield from _helps(below, inner, level + 1)


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


# Python: read, not imported, because half of it needs torch.


def python() -> str:
    parts = [
        "# Python",
        "What `import compilescope` offers. A name is imported when it is first used, so the "
        "import itself costs nothing.",
    ]
    for name in sorted(compilescope.__all__, key=lambda name: (name.lower(), name)):
        if name != "__version__":
            parts += _name(name, compilescope._HOMES[name])
    return "\n\n".join(parts) + "\n"


def _name(name: str, home: str) -> Iterator[str]:
    yield f"## `{name}`"
    node = _found(home, name)
    if isinstance(node, ast.Assign):
        # A backend is an object that torch calls, and that makes others of its kind.
        assert isinstance(node.value, ast.Call)
        made = _found(*_imported(home, ast.unparse(node.value.func)))
        assert isinstance(made, ast.ClassDef)
        yield _doc(made)
        yield from _call(name, made)
        return
    if isinstance(node, ast.FunctionDef):
        yield _fenced("python", _signature(node, name))
        yield _doc(node)
        return
    assert isinstance(node, ast.ClassDef)
    yield _fenced("python", _constructor(node))
    yield _doc(node)
    yield from _members(node)


def _tree(home: str) -> ast.Module:
    path = PACKAGE.joinpath(*home.split("."))
    file = path / "__init__.py"
    if not file.is_file():
        file = path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _found(home: str, name: str) -> ast.stmt:
    for node in _tree(home).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node
    raise LookupError(f"{home} has no {name}")


def _imported(home: str, name: str) -> tuple[str, str]:
    for node in _tree(home).body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return str(node.module).removeprefix("compilescope."), name
    raise LookupError(f"{home} imports no {name}")


def _doc(node: ast.ClassDef | ast.FunctionDef) -> str:
    return _prose(ast.get_docstring(node) or "")


def _prose(text: str) -> str:
    """A docstring as Markdown: what is indented in it is code."""
    return "\n\n".join(
        _fenced("python", textwrap.dedent(part)) if part.startswith("    ") else part
        for part in text.split("\n\n")
    )


def _signature(node: ast.FunctionDef, name: str) -> str:
    """On one line if it fits, else an argument a line."""
    arguments = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(arguments, ast.FunctionDef)
    shown = arguments.args
    if shown.args and shown.args[0].arg in ("self", "cls"):
        shown.args.pop(0)
    returned = f" -> {ast.unparse(arguments.returns)}" if arguments.returns else ""
    line = f"{name}({ast.unparse(shown)}){returned}"
    if len(line) <= 88:
        return line
    return f"{name}(\n    " + ",\n    ".join(_arguments(shown)) + f",\n){returned}"


def _arguments(shown: ast.arguments) -> list[str]:
    """Each as it is written."""
    written = []
    plain = [*shown.posonlyargs, *shown.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(shown.defaults))
    for argument, default in zip(plain, [*defaults, *shown.defaults], strict=True):
        written.append(_argument(argument, default))
    if shown.vararg:
        written.append(f"*{ast.unparse(shown.vararg)}")
    elif shown.kwonlyargs:
        written.append("*")
    for argument, default in zip(shown.kwonlyargs, shown.kw_defaults, strict=True):
        written.append(_argument(argument, default))
    if shown.kwarg:
        written.append(f"**{ast.unparse(shown.kwarg)}")
    return written


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    equals = " = " if argument.annotation else "="
    return ast.unparse(argument) + (f"{equals}{ast.unparse(default)}" if default else "")


def _constructor(node: ast.ClassDef) -> str:
    for below in node.body:
        if isinstance(below, ast.FunctionDef) and below.name == "__init__":
            below.returns = None
            return f"class {_signature(below, node.name)}"
    return f"class {node.name}"


def _call(name: str, node: ast.ClassDef) -> Iterator[str]:
    for below in node.body:
        if isinstance(below, ast.FunctionDef) and below.name == "__call__":
            yield _fenced("python", _signature(below, name))


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Fields and methods for users, each with what its docstring says."""
    rows = []
    for number, below in enumerate(node.body):
        after = node.body[number + 1] if number + 1 < len(node.body) else None
        if isinstance(below, ast.FunctionDef) and not below.name.startswith("_"):
            decorators = [ast.unparse(each) for each in below.decorator_list]
            words = " ".join((ast.get_docstring(below) or "").split("\n\n")[0].split())
            shown = (
                below.name if any("property" in each for each in decorators) else f"{below.name}()"
            )
            if not any(".setter" in each for each in decorators):
                rows.append((shown, words))
        elif isinstance(below, ast.AnnAssign) and not ast.unparse(below.target).startswith("_"):
            rows.append((ast.unparse(below.target), _said_after(after)))
    if rows:
        yield _table(("member", ""), [(f"`{shown}`", _cell(words)) for shown, words in rows])


def _said_after(after: ast.stmt | None) -> str:
    value = getattr(after, "value", None)
    if isinstance(after, ast.Expr) and isinstance(value, ast.Constant):
        return " ".join(str(value.value).split())
    return ""


# Tables


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def rules() -> str:
    titles = {category.id: category.title for category in load_taxonomy().categories}
    breaks = break_rules()
    guards = guard_rules()
    parts = [
        "# Rules",
        f"{len(breaks)} patterns of graph breaks and {len(guards)} of recompiles. The first that "
        "applies to a cause, in this order, explains it in terms of your line "
        "([Explain](../guides/explain.md)). `compilescope fix --rule ID` takes the names. The "
        "examples are run by the tests: the first loses compilation and this rule explains it.",
        "## Graph breaks",
    ]
    for rule in breaks:
        parts += [f"### `{rule.id}`", _cell(titles[rule.category]) + f" (`{rule.category}`)"]
        parts += _examples(rule.examples)
    parts.append("## Recompiles")
    for rule in guards:
        parts += [f"### `{rule.id}`{{ #recompile-{rule.id} }}", *_examples(rule.examples)]
    return "\n\n".join(parts) + "\n"


def _examples(examples: tuple[Example, ...]) -> Iterator[str]:
    for example in examples[:1]:
        yield _folded("Example", _fenced("python", example.bad))


def _folded(title: str, text: str) -> str:
    return f'??? example "{title}"\n\n' + textwrap.indent(text, "    ")


def fixes() -> str:
    parts = [
        "# Fixes",
        f"The {len(all_fixes())} changes that [`compilescope fix`](../guides/fix.md) tries, what a "
        "person would sooner write first. Each example is what the tests compare: the fix makes of "
        "the first program exactly the second, and a run verifies it.",
    ]
    for fix in all_fixes():
        parts += [
            f"## `{fix.id}`",
            f"**{fix.title}.** {fix.why}",
            f"For {', '.join(f'`{rule}`' for rule in sorted(fix.rules))}; kind: {fix.kind}"
            + ("; it changes something that you can observe." if fix.observable else "."),
        ]
        for example in fix.examples[:1]:
            pair = f"{_fenced('python', example.bad)}\n\n{_fenced('python', example.good)}"
            parts.append(_folded("Before and after", pair))
    return "\n\n".join(parts) + "\n"


def constraints() -> str:
    parts = [
        "# Constraints",
        "What [`compilescope preflight`](../guides/preflight.md) and the "
        "[mock backends](../guides/backends.md) check of a graph, and the keys of a "
        "[device file](devices.md) that each reads.",
    ]
    rows = [
        (f"`{rule.id}`", _cell(rule.title), ", ".join(f"`{key}`" for key in rule.reads))
        for rule in all_rules()
    ]
    parts.append(_table(("constraint", "checks", "keys"), rows))
    return "\n\n".join(parts) + "\n"


def devices() -> str:
    found = shipped_devices()
    parts = [
        "# Shipped devices",
        f"The {len(found)} device files that come with compilescope: examples to copy. "
        "[Device files](devices.md) describes the format; `compilescope devices show NAME` prints "
        "one as a table.",
    ]
    for device in found:
        parts += [f"## `{device.name}`", f"{device.title}. {device.note}".strip()]
        parts.append(_fenced("toml", device_path(device.name).read_text(encoding="utf-8")))
    return "\n\n".join(parts) + "\n"


def _layers(found: re.Match[str]) -> str:
    """The map is aligned by hand; its lines are too long for a page."""
    lines = [re.split(r"  +", line.strip()) for line in found[0].splitlines()]
    rows = [(", ".join(f"`{name}`" for name in line[:-1]), _cell(line[-1])) for line in lines]
    return _table(("package", "what it is"), rows) + "\n"


def architecture() -> str:
    """The map of the house, which the repository's CONTRIBUTING.md holds."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    wanted = ("The map of the house", "Three walks", "Adding one thing is one file", "The zoo")
    parts = ["# Architecture"]
    for section in re.split(r"^(?=## )", text, flags=re.M)[1:]:
        heading, _, body = section.partition("\n")
        if heading.removeprefix("## ") in wanted:
            parts.append(f"{heading}\n{_MAP.sub(_layers, body).rstrip()}")
    return "\n\n".join(parts).replace("](docs/", "](../") + "\n"
