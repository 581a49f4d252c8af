"""Writes the templates of a report's page (`tools/page_templates/`) as plain Python, into
`report/render/drawn/`.

    python tools/write_templates.py

Jinja takes longer to import and to compile these templates than a small page takes to draw: with
it, `report --format html` of a log of 3 MB took 369 ms of CPU instead of 257 (medians of 9 runs).
What is written here needs neither, and prints the same characters. It knows the part of Jinja that
the templates use and refuses the rest by name; where a template asks for more, teach it here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, nodes

from compilescope.report.render import drawn
from compilescope.report.render.safe_html import finalize

TARGET = Path(drawn.__file__).parent
TEMPLATES = Path(__file__).with_name("page_templates")
_HEAD = '''\
"""Templates as Python, written by tools/write_templates.py: change a template, not this."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from compilescope.report.render.template_output import concat, join, loops, printed
'''
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in"}
_JOINS = {nodes.And: "and", nodes.Or: "or"}


def names() -> list[str]:
    """Of all templates: `blocks/item`."""
    found = (path.relative_to(TEMPLATES).with_suffix("") for path in TEMPLATES.rglob("*.html"))
    return sorted(path.as_posix() for path in found)


def modules() -> dict[str, str]:
    """The files: one of the blocks, one of what stands around them."""
    blocks = [name for name in names() if name.startswith("blocks/")]
    return {
        "blocks.py": _module(blocks),
        "frames.py": _module([name for name in names() if name not in blocks]),
    }


def by_jinja(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Draws a template with Jinja: what is written prints the same."""
    return _environment().get_template(f"{name}.html").render


@functools.cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _module(drawn: list[str]) -> str:
    rows = (f'    "{name}": {_name_of(name)},\n' for name in drawn)
    table = f"DRAWN = {{\n{''.join(rows)}}}\n"
    words = '"""What draws each template, by name."""\n'
    return "\n\n".join([_HEAD, *(_function(name) for name in drawn), table + words])


def _name_of(name: str) -> str:
    return "_" + name.replace("/", "_")


def _function(name: str) -> str:
    text = (TEMPLATES / f"{name}.html").read_text(encoding="utf-8")
    tree = _environment().parse(text)
    written = "\n".join(_Writer().function(_name_of(name), "v: dict[str, Any]", tree.body, 0))
    return written.replace(") -> Any:", ") -> str:", 1)


class _Writer:
    """One template. Names that no loop, macro or `set` binds are looked up in `v` when needed, so
    that one which a page has no use for may be missing, as in Jinja. What is bound twice gets two
    names: Jinja forgets a loop's names at its end, Python does not."""

    def __init__(self) -> None:
        self._scope: dict[str, str] = {}
        self._taken: set[str] = {"v", "out", "printed", "join", "concat", "loops", "Markup"}

    def function(
        self, name: str, parameters: str, body: Iterable[nodes.Node], depth: int
    ) -> Iterator[str]:
        pad = "    " * depth
        yield f"{pad}def {name}({parameters}) -> Any:"
        yield f"{pad}    out: list[str] = []"
        yield from self._statements(body, depth + 1)
        yield f'{pad}    return "".join(out)'

    def _bind(self, name: str) -> str:
        numbers = (f"{name}{number}" for number in range(2, 100))
        chosen = next(each for each in (name, *numbers) if each not in self._taken)
        self._taken.add(chosen)
        self._scope[name] = chosen
        return chosen

    def _statements(self, body: Iterable[nodes.Node], depth: int) -> Iterator[str]:
        # Macros may call one another before they are met.
        body = list(body)
        for node in body:
            if isinstance(node, nodes.Macro):
                self._bind(node.name)
        wrote = False
        for node in body:
            for line in self._statement(node, depth):
                wrote = True
                yield line
        if not wrote:
            yield "    " * depth + "pass"

    def _statement(self, node: nodes.Node, depth: int) -> Iterator[str]:
        pad = "    " * depth
        match node:
            case nodes.Output():
                yield f"{pad}out += ({', '.join(self._printed(each) for each in node.nodes)},)"
            case nodes.If():
                yield from self._if(node, depth)
            case nodes.For():
                yield from self._for(node, depth)
            case nodes.Assign():
                value = self._value(node.node)
                yield f"{pad}{self._target(node.target)} = {value}"
            case nodes.Macro():
                yield from self._macro(node, depth)
            case _:
                raise NotImplementedError(type(node).__name__)

    def _if(self, node: nodes.If, depth: int) -> Iterator[str]:
        yield from self._block(f"if {self._value(node.test)}:", node.body, depth)
        for other in node.elif_:
            yield from self._block(f"elif {self._value(other.test)}:", other.body, depth)
        if node.else_:
            yield from self._block("else:", node.else_, depth)

    def _block(self, head: str, body: Iterable[nodes.Node], depth: int) -> Iterator[str]:
        """On one line where its body is one, so that the file stays short."""
        lines = list(self._statements(body, depth + 1))
        if len(lines) == 1 and not lines[0].lstrip().startswith(("if ", "for ")):
            yield "    " * depth + f"{head} {lines[0].lstrip()}"
            return
        yield "    " * depth + head
        yield from lines

    def _for(self, node: nodes.For, depth: int) -> Iterator[str]:
        if node.else_ or node.test or node.recursive:
            raise NotImplementedError("a loop with an else, a test or recursion")
        iterated = self._value(node.iter)
        around = dict(self._scope)
        if _speaks_of_its_loop(node.body):
            head = f"for {self._bind('loop')}, {_in_brackets(self._target(node.target))} in "
            head += f"loops({iterated}):"
        else:
            head = f"for {self._target(node.target)} in {iterated}:"
        yield from self._block(head, node.body, depth)
        self._scope = around

    def _macro(self, node: nodes.Macro, depth: int) -> Iterator[str]:
        around = dict(self._scope)
        name = self._scope[node.name]
        defaults = ["" for _ in range(len(node.args) - len(node.defaults))]
        defaults += [f" = {self._value(default)}" for default in node.defaults]
        given = [
            f"{self._bind(each.name)}: Any{default}"
            for each, default in zip(node.args, defaults, strict=True)
        ]
        lines = list(self.function(name, ", ".join(given), node.body, depth))
        self._scope = around
        yield from lines[:-1]
        yield "    " * (depth + 1) + 'return Markup("".join(out))'
        yield ""

    def _target(self, node: nodes.Node) -> str:
        match node:
            case nodes.Name():
                return self._bind(node.name)
            case nodes.Tuple():
                return ", ".join(self._target(each) for each in node.items)
        raise NotImplementedError(f"binding {type(node).__name__}")

    def _printed(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.TemplateData):
            return repr(node.data)
        return f"printed({self._value(node)})"

    def _value(self, node: nodes.Node) -> str:
        match node:
            case nodes.Const():
                return repr(node.value)
            case nodes.Name():
                return self._scope.get(node.name) or f"v[{node.name!r}]"
            case nodes.Getattr():
                return f"{self._value(node.node)}.{node.attr}"
            case nodes.Getitem():
                return f"{self._value(node.node)}[{self._value(node.arg)}]"
            case nodes.Call():
                given = ", ".join(self._value(each) for each in node.args)
                if node.kwargs or node.dyn_args or node.dyn_kwargs:
                    raise NotImplementedError("a call with names or stars")
                return f"{self._value(node.node)}({given})"
            case nodes.Filter():
                return self._filtered(node)
            case nodes.Tuple():
                return f"({', '.join(self._value(each) for each in node.items)},)"
            case nodes.Neg():
                return f"-{self._value(node.node)}"
            case nodes.Concat():
                return f"concat({', '.join(self._value(each) for each in node.nodes)})"
            case _:
                return self._condition(node)

    def _condition(self, node: nodes.Node) -> str:
        match node:
            case nodes.And() | nodes.Or():
                word = _JOINS[type(node)]
                return f"({self._value(node.left)} {word} {self._value(node.right)})"
            case nodes.Not():
                return f"(not {self._value(node.node)})"
            case nodes.CondExpr():
                other = self._value(node.expr2) if node.expr2 is not None else "''"
                return f"({self._value(node.expr1)} if {self._value(node.test)} else {other})"
            case nodes.Compare():
                (last,) = node.ops
                return f"({self._value(node.expr)} {_COMPARED[last.op]} {self._value(last.expr)})"
            case nodes.Test() if node.name == "none":
                return f"({self._value(node.node)} is None)"
        raise NotImplementedError(type(node).__name__)

    def _filtered(self, node: nodes.Filter) -> str:
        assert node.node is not None, "the filter of a block"
        value = self._value(node.node)
        given = [self._value(each) for each in node.args]
        match node.name:
            case "length":
                return f"len({value})"
            case "join":
                return f"join({value}, {given[0]})"
            case "replace":
                return f"{value}.replace({given[0]}, {given[1]})"
            case "select" if not given:
                return f"filter(None, {value})"
        raise NotImplementedError(f"the filter {node.name}")


def _speaks_of_its_loop(body: Iterable[nodes.Node]) -> bool:
    """A loop within means itself."""
    for node in body:
        if isinstance(node, nodes.Name) and node.name == "loop":
            return True
        inner = [node.iter] if isinstance(node, nodes.For) else node.iter_child_nodes()
        if _speaks_of_its_loop(inner):
            return True
    return False


def _in_brackets(target: str) -> str:
    return f"({target})" if "," in target else target


if __name__ == "__main__":
    for file, text in modules().items():
        (TARGET / file).write_text(text, encoding="utf-8")
