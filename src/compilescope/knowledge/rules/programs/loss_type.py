"""transformers chooses a model's loss at each call, and says so in the log."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.source.outline import dotted

_DEFAULT = late(r"Using the default loss: `?(\w+)Loss")


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if isinstance(finding, RecompileFinding) or not case.passes("transformers"):
        return False
    return finding.function == "loss_function" and case.says("loss_type")


def _words(case: ProgramCase) -> str:
    told = f"{getattr(case.finding, 'context', '')} {getattr(case.finding, 'explanation', '')}"
    match = _DEFAULT.search(told)
    if match is None:
        return ""
    model = _model(case)
    return (
        f"The model's class names no loss, so `loss_function` falls back to `{match[1]}Loss` at each "
        f"call and logs that. Say it before the training begins: "
        f'`{model}.loss_type = "{match[1]}"`; the loss is the same, and the log line is gone.'
    )


def _model(case: ProgramCase) -> str:
    """What the user gives to torch.compile or to the Trainer."""
    asked = case.compile_call
    if (
        asked is not None
        and asked.way != "decorator"
        and asked.target.replace(".", "").isidentifier()
    ):
        return asked.target
    for outline in case.outlines:
        for call, _ in outline.calls:
            if not dotted(call.func).endswith("Trainer"):
                continue
            given = [each.value for each in call.keywords if each.arg == "model"] + call.args[:1]
            if given and dotted(given[0]):
                return dotted(given[0])
    return "model"


RULE = ProgramRule(
    id="loss-type",
    order=70,
    applies=_applies,
    words=_words,
)
