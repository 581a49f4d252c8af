"""The words for a compilation that failed and is no graph break."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.remedy import Remedy, judgement, program, upgrade
from compilescope.knowledge.rules.causes.own_backend import own_backend
from compilescope.knowledge.source.spots import Sources


def failure_words(failure: FailureFinding, sources: Sources) -> tuple[str, str, list[Remedy]]:
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
        own = own_backend(failure, sources)
        return (
            "backend-failure",
            f"The {failure.phase} graph of `{failure.function}` went to {backend}, which raised: "
            f"{said}",
            [judgement(own)]
            if own
            else [
                *_asked(failure, said),
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
            "The operation fails on tensors of these shapes and dtypes, and would fail in eager "
            f"mode too: {said}",
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


_NO_AUTOGRAD = late(r"Trying to backward through ([\w.]+?)(?:\.default)? but no autograd formula")
"""As torch words it (2.11 to 2.14) for an operator of `torch.library` without a derivative."""
_REQUEST = late(
    r"\bPlease (?!do this|report|file|open an? |see )[^.]{1,400}(?:\.(?=\S)[^.]{1,400}){0,9}\."
)


def _asked(failure: FailureFinding, said: str) -> list[Remedy]:
    """What the error itself says to do."""
    request = _REQUEST.search(said) or _REQUEST.search(failure.text.strip().split("\n\n")[0])
    found = _NO_AUTOGRAD.search(said)
    if found is not None:
        name = found[1].replace(".", "::", 1)
        words = request[0] if request is not None else "Please use register_autograd to add one."
        # Nothing that changes how it is compiled would help: eager mode raises the same.
        return [
            program(
                f"Give `{name}` a derivative, beside its definition: "
                f'`torch.library.register_autograd("{name}", backward, '
                f"setup_context=setup_context)`. Torch says: {words}"
            )
        ]
    return [judgement(f"Do what the error says: {request[0]}")] if request is not None else []


def _said(message: str) -> str:
    """The first line that says something: Dynamo puts `backend='x' raised:` before the error."""
    lines = message.strip().split("\n", 2)
    return lines[1] if len(lines) > 1 and lines[0].endswith(" raised:") else lines[0]
