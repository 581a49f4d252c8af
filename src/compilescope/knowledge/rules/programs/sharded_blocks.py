"""Blocks are sharded, then the whole is compiled: their hooks are no part of a graph."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import assigned, code
from compilescope.knowledge.source.outline import CompileCall, dotted

_OF_DDP = "torch/nn/parallel"
_DDP = ("DDP", "DistributedDataParallel")
_WRAPS = ("fully_shard", "FSDP", "FullyShardedDataParallel")


def _applies(case: ProgramCase) -> bool:
    if isinstance(case.finding, RecompileFinding):
        return False
    return case.passes("torch/distributed/fsdp", "torch/distributed/_composable", _OF_DDP)


def _words(case: ProgramCase) -> str:
    asked = case.compile_call
    if asked is None or asked.way == "decorator":
        return ""
    if case.passes(_OF_DDP):
        return _before_ddp(case, asked)
    for outline in case.outlines:
        for node in ast.walk(outline.tree):
            if not (isinstance(node, ast.For) and isinstance(node.target, ast.Name)):
                continue
            wraps = [
                each
                for each in ast.walk(node)
                if isinstance(each, ast.Call)
                and dotted(each.func).rpartition(".")[2] in _WRAPS
                and each.args
                and dotted(each.args[0]) == node.target.id
            ]
            if not wraps:
                continue
            block = node.target.id
            whole = assigned(case, asked.node, ast.unparse(asked.node))
            return (
                f"The hooks of {code(dotted(wraps[0].func))} run in Python, at each block. Compile each "
                f"block before it is wrapped, and not the whole: in `for {block} in "
                f"{ast.unparse(node.iter)}`, write `{block}.compile()` before {code(wraps[0])}, and "
                f"take {code(whole)} away. The hooks then run between the compiled blocks."
            )
    return ""


def _before_ddp(case: ProgramCase, asked: CompileCall) -> str:
    for outline in case.outlines:
        for call, _ in outline.calls:
            inner = dotted(call.args[0]) if call.args else ""
            if dotted(call.func).rpartition(".")[2] not in _DDP or not inner:
                continue
            if assigned(case, call, "") != f"{asked.target} = ":
                continue
            whole = assigned(case, asked.node, ast.unparse(asked.node))
            return (
                f"These breaks are in torch's own code for {code(dotted(call.func))}. For none of them, "
                f"compile what is wrapped: `{inner}.compile()` before {code(call)}, and not "
                f"{code(whole)}; the gradients are then exchanged after the whole backward, and not "
                "while it runs."
            )
    return ""


RULE = ProgramRule(
    id="sharded-blocks",
    order=90,
    applies=_applies,
    words=_words,
)
