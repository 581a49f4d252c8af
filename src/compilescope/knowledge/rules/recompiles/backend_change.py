"""One function compiled with two backends, or with two settings of one backend."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, cut

_WRAPPED = late(
    r"backend: _TorchCompile\w*\(compiler='(?P<name>[^']*)', dynamic=(?P<dynamic>\w+)\)"
)
_BARE = late(r"(?:Cached|New) backend: (?P<name>.{1,400}?) \(id=")


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.subject == "the backend" or miss.finding.guard.startswith("BACKEND_MATCH")


def _backends(miss: RecompileCase) -> list[str]:
    """The earlier backend and the new one, as far as torch tells them."""
    wrapped = _WRAPPED.findall(miss.finding.guard)
    if len(wrapped) == 2:
        (one, was), (two, now) = wrapped
        if was != now:
            return [f"{one} with dynamic={was}", f"{two} with dynamic={now}"]
        return [one, two]
    return [cut(name) for name in _BARE.findall(miss.finding.guard)]


def _why(miss: RecompileCase) -> str:
    function, backends = called(miss), _backends(miss)
    if len(backends) != 2:
        return (
            f"`{function}` was compiled before for another backend or with other torch.compile "
            "settings."
        )
    if backends[0] == backends[1]:
        return (
            f"`{function}` was compiled before for the backend `{backends[0]}`, and now for "
            "another object of the same name. Dynamo compares backends by identity."
        )
    return (
        f"`{function}` was compiled before for the backend `{backends[0]}`, and is now called "
        f"through a torch.compile with `{backends[1]}`. Each compilation serves one backend."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    function, backends = called(miss), _backends(miss)
    if len(backends) == 2 and backends[0] == backends[1]:
        return [
            source(
                f"Create the backend `{backends[0]}` once, outside the loop or function that calls "
                "torch.compile, and pass that same object each time."
            )
        ]
    return [
        source(
            f"Call `torch.compile({function}, ...)` once, with one backend and one set of options, "
            "and reuse what it returns."
        ),
        judgement(f"If you need both, leave it: `{function}` is compiled once for each."),
    ]


RULE = GuardRule(
    id="backend-change",
    order=20,
    needs=("the backend", "BACKEND_MATCH"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
