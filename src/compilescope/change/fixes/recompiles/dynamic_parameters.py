"""The sizes of parameters and buffers that a program replaces become variables of the graph."""

from __future__ import annotations

from compilescope.change.fixes.arguments.guarded import cause_of, numbers_seen, size_of
from compilescope.change.fixes.compilation.regions import region_of
from compilescope.change.fixes.compilation.settings import price_of_dynamic, with_dynamic
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.record.bodies import Recompile

_OWN = "force_parameter_static_shapes"
_OF_LAYERS = "force_nn_module_property_static_shapes"
"""What torch's own layers hold stays constant for this flag as well (torch 2.13)."""

_ANY_SIZE = "recompile/size-change"


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if cause.rule_id == _ANY_SIZE:
        _check_parameter(subject)
    if subject.program.digest.sites and not _is_of_own_code(subject, cause):
        raise Refused("this recompile may go away once the graph breaks are fixed")
    if region_of(subject).is_of_many:
        raise NotMeant("several objects are compiled, each with sizes that never change")
    if numbers_seen(subject) & {0, 1}:
        raise Refused("sizes 0 and 1 are compiled separately, whatever the flags say")
    flags = [_OWN, _OF_LAYERS] if "._modules['" in cause.subject else [_OWN]
    names = " and ".join(f"`torch._dynamo.config.{flag}`" for flag in flags)
    verb = "are" if len(flags) > 1 else "is"
    return Patch(
        with_dynamic(subject, dict.fromkeys(flags, False)),
        states=f"{names} {verb} False for the whole program. {price_of_dynamic(subject)}".strip(),
    )


def _is_of_own_code(subject: Subject, cause: RecompileFinding) -> bool:
    """After a break, layers of torch's are compiled one by one and share their code; a finding
    about one has the user's line that calls it."""
    events = subject.program.run.events_with(cause.because)
    files = {each.body.frame.file for each in events if isinstance(each.body, Recompile)}
    return not files or any(map(subject.program.is_own, files))


def _check_parameter(subject: Subject) -> None:
    """An argument may be a parameter too, and its guard does not say so."""
    name, _ = size_of(subject)
    seen = subject.facts(name)
    if not seen or any(fact.kind != "parameter" for fact in seen):
        raise NotMeant(f"`{name}` is not known to be a parameter")


FIX = Fix(
    id="dynamic-parameters",
    title="let sizes of parameters be dynamic",
    rules=frozenset({"recompile/parameter-size", _ANY_SIZE}),
    order=150,
    kind="config",
    why="Dynamo treats sizes of parameters and buffers as constants, even with `dynamic=True`, "
    "unless the flag is off. Kernels for any size can be slower than kernels for one size. The "
    "timings show whether they are.",
    propose=_propose,
)
