"""The programs whose advice is tried: the zoo, programs for the fixes, examples, models."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from advice.running import Program
from compilescope.base.plugins import discover
from compilescope.knowledge.registry.cases import ExampleFile, load_examples
from compilescope.knowledge.rules import breaks
from compilescope.knowledge.rules import recompiles as guards
from compilescope.knowledge.rules.causes.rule import BreakRule, GuardRule

TESTS = Path(__file__).parent.parent
_FIX_MODELS = TESTS.parent / "benchmarks" / "fix_models"


def zoo() -> list[Program]:
    return [_file(path, "zoo") for path in sorted((TESTS / "zoo" / "programs").glob("*.py"))]


def fix_programs() -> list[Program]:
    found = []
    for path in sorted((TESTS / "fixes" / "programs").glob("*.py")):
        words = re.search(r"^# args: (.+)$", path.read_text(), re.MULTILINE)
        found.append(_file(path, "fixes", tuple(words[1].split()) if words else ()))
    return found


def rule_examples() -> list[Program]:
    rules = [*discover(breaks, "RULE", BreakRule), *discover(guards, "RULE", GuardRule)]
    return [
        Program(f"{rule.id}-{number}", "rules", example.bad)
        for rule in rules
        for number, example in enumerate(rule.examples, 1)
    ]


def registry_examples() -> list[Program]:
    return [
        Program(gb_id.lower(), "registry", _as_script(example), f"{gb_id.lower()}.py")
        for gb_id, example in sorted(load_examples().items())
    ]


def models() -> list[Program]:
    """Families of `transformers`, each as a program of its own."""
    text = (TESTS / "models" / "families.py").read_text()
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    families = [node.name for node in functions if node.decorator_list]
    found = [Program(name, "models", _family(text, tree, name), "train.py") for name in families]
    scripts = [_file(path, "models") for path in sorted(_FIX_MODELS.glob("*.py"))]
    return found + [replace(script, name=f"{script.name}_script") for script in scripts]


def _family(text: str, tree: ast.Module, name: str) -> str:
    """What the family needs of the file, and its call."""
    kept = []
    for node in tree.body:
        words = ast.get_source_segment(text, node) or ""
        if isinstance(node, ast.FunctionDef):
            if node.name not in (name, "ids"):
                continue
        elif "FAMILIES" in words or words.startswith(("Call", '"""', "from __future__")):
            continue
        kept.append(words)
    return "\n\n\n".join(kept) + _CALL.format(name=name)


CORPORA: dict[str, Callable[[], list[Program]]] = {
    "zoo": zoo,
    "fixes": fix_programs,
    "rules": rule_examples,
    "registry": registry_examples,
    "models": models,
}

_CALL = """


torch.manual_seed(0)
model, call = {name}()
call(torch.compile(model, backend="eager"))
"""


def _file(path: Path, corpus: str, args: tuple[str, ...] = ()) -> Program:
    return Program(path.stem, corpus, path.read_text(), path.name, args)


def _as_script(example: ExampleFile) -> str:
    """The example with the call that `tools/registry_upkeep.py examples` makes of it."""
    lines = ["", "", "import torch", ""]
    lines += [f"torch._dynamo.config.{name} = {value!r}" for name, value in example.config.items()]
    lines += ["torch.manual_seed(0)"]
    if "def run(" in example.source:
        lines += ["print(run())"]
    else:
        options = f"backend={example.backend!r}, fullgraph={example.fullgraph}"
        lines += [f"compiled = torch.compile(f, {options})", "print(compiled(*inputs()))"]
    return example.source + "\n".join(lines) + "\n"
