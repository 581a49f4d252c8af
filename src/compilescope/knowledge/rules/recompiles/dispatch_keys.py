"""A tensor is dispatched differently: a conjugate view, a batched tensor under vmap, and so on."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    dispatch_tensor,
    keys_gone_and_new,
    shown,
)

_LAZY_VIEWS = {"Conjugate": "resolve_conj", "Negative": "resolve_neg"}
_TRANSFORMS = (
    "FuncTorchBatched",
    "FuncTorchGradWrapper",
    "BatchedNestedTensor",
    "FuncTorchVmapMode",
)


def _applies(miss: RecompileCase) -> bool:
    return dispatch_tensor(miss) != ""


def _why(miss: RecompileCase) -> str:
    gone, new = keys_gone_and_new(miss)
    changes = [f"without {', '.join(sorted(gone))}"] if gone else []
    changes += [f"with {', '.join(sorted(new))}"] if new else []
    return (
        f"`{shown(dispatch_tensor(miss))}` looks the same, but torch dispatches it differently "
        f"than when `{called(miss)}` was compiled: now "
        f"{' and '.join(changes) or 'in another mode'}."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor, function = shown(dispatch_tensor(miss)), called(miss)
    gone, new = keys_gone_and_new(miss)
    for key, resolve in _LAZY_VIEWS.items():
        if key in gone | new:
            return [
                source(
                    f"Pass `{tensor}.{resolve}()` in every call, if nothing writes to it: it "
                    f"copies `{tensor}` only if that is a lazy view ({key.lower()})."
                ),
                leave(miss, "of the two"),
            ]
    if any(key in _TRANSFORMS for key in gone | new):
        return [
            source(
                "Compile outside the transform, `torch.compile(torch.vmap(f))` rather than "
                "`torch.vmap(torch.compile(f))`, and keep another compiled function for the plain "
                f"calls of `{function}`."
            ),
            leave(miss, "of the two"),
        ]
    return [
        judgement(
            f"Find what is active around one call of `{function}` but not the other "
            "(`torch.inference_mode()`, another mode, a transform, a tensor subclass that makes "
            f"`{tensor}`), and make all calls alike."
        )
    ]


RULE = GuardRule(
    id="dispatch-keys",
    order=140,
    needs=("dispatch keys",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
