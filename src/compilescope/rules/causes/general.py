"""Words for breaks that no rule knows: from their category, and from the user's own line."""

from __future__ import annotations

from compilescope.findings.failures import FailureFinding
from compilescope.findings.remedy import Remedy, judgement, upgrade
from compilescope.registry.taxonomy import Category
from compilescope.rules.causes.rule import BreakCase


def general_why(case: BreakCase, category: Category | None) -> str:
    said = case.finding.explanation.strip().split("\n", 1)[0] or case.finding.gb_type
    if category is None:
        return f"At `{case.text}`, PyTorch says: {said}"
    return f"{category.why} It happens at `{case.text}`. PyTorch says: {said}"


def general_remedies(case: BreakCase, category: Category | None) -> list[Remedy]:
    fix = category.fix if category is not None else "Keep it out of compiled code."
    place = f"At `{case.text}` in `{case.function}`"
    remedies = [judgement(f"{place}, {fix[0].lower()}{fix[1:]}")]
    if category is not None and "upgrade" in category.means:
        remedies.append(
            upgrade(
                f"A newer PyTorch may trace `{case.text}`. If it doesn't, report it with this line."
            )
        )
    return remedies


def failure_words(failure: FailureFinding) -> tuple[str, str, list[Remedy]]:
    """Category, reason and remedies of a failure that is no graph break."""
    said = failure.cause or _said(failure.text)
    if failure.error == "ConstraintError":
        return (
            "backend-failure",
            f"The {failure.phase} graph of `{failure.function}` was rejected: {said}",
            [judgement("Change the lines that its violations name, each with what to try there.")],
        )
    if failure.error == "BackendCompilerFailed" or failure.backend or failure.phase == "backward":
        backend = failure.backend or "the backend"
        return (
            "backend-failure",
            f"The {failure.phase} graph of `{failure.function}` went to {backend}, which raised: "
            f"{said}",
            [
                judgement(
                    f'Check whether `{failure.function}` compiles with `backend="aot_eager"` and '
                    'with `backend="eager"`: the first that works shows which stage fails.'
                ),
                upgrade(f"If {backend} is PyTorch's own, a newer PyTorch may have fixed this."),
            ],
        )
    if failure.error in ("FailOnRecompileLimitHit", "RecompileError"):
        return (
            "recompile-limit",
            f"`{failure.function}` needed a recompile, and was set to raise instead: {said}",
            [
                judgement(
                    f"Fix the recompiles of `{failure.function}`; their causes are listed there."
                )
            ],
        )
    if failure.error == "TorchRuntimeError":
        return (
            "user-error",
            f"The operation fails on tensors of these shapes and dtypes, and would fail in eager mode "
            f"too: {said}",
            [
                judgement(
                    f"Run `{failure.function}` without torch.compile and fix the error it raises."
                )
            ],
        )
    return (
        "compiler-bug",
        f"Compiling `{failure.function}` raised {failure.error}: {said}",
        [
            judgement(f"For now, run `{failure.function}` eagerly with `@torch.compiler.disable`."),
            upgrade("A newer PyTorch may have fixed this; if not, report it with this message."),
        ],
    )


def _said(message: str) -> str:
    """The first line that says something: Dynamo puts `backend='x' raised:` before the error."""
    lines = message.strip().split("\n", 2)
    return lines[1] if len(lines) > 1 and lines[0].endswith(" raised:") else lines[0]
