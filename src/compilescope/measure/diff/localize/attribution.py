"""For an operation that goes wrong: its ATen operators, the responsible pass, Inductor's code.

The pass is found for Inductor and for any backend that names its passes: it has `passes`, their
names in the order in which they run, and `without(names)`, which gives the same backend without
those. Adapters may have them (docs/guides/adapter.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch.fx import GraphModule

from compilescope.instrument.torchapi.compilation.fresh import uncached
from compilescope.instrument.torchapi.inductor.blame import (
    Blame,
    Good,
    TooManyTrials,
    Trials,
    find_blame,
    noted_code,
)
from compilescope.instrument.torchapi.inductor.graph_compiles import compile_through_aot
from compilescope.instrument.torchapi.trials.backends import CountedBackend
from compilescope.measure.diff.localize.graph_parts.anatomy import (
    GraphRecord,
    RecordedCall,
    copy_module,
    examine,
)
from compilescope.measure.diff.localize.graph_parts.part_runs import (
    PartCall,
    Reference,
    compile_part,
    run_part,
)
from compilescope.measure.diff.localize.graph_parts.parts import GraphPart
from compilescope.measure.diff.localize.probes import PartProber, Probe, compare
from compilescope.measure.diff.localize.records import GuiltyOperation
from compilescope.measure.diff.localize.search import Suspect
from compilescope.measure.diff.runs.modes import CallModes
from compilescope.measure.tensors.copies import copied_values
from compilescope.measure.tensors.tolerances import ComparisonConfig

_LIMIT_S = 180.0
"""For one operation: some dozens of trials, each of which compiles for a few seconds. Chosen; past
it nothing further is tried."""
_MOST_CODE = 200_000
"""Letters of Inductor's code that a record keeps. Chosen: the size of runs and reports."""
_MOST_TRIALS = 64
"""Chosen: enough for 30 passes, each left out once and put back once."""
RIGHT_ALONE = "right when compiled by itself, with all passes"


class Attribution:
    """Of the suspects of one graph."""

    def __init__(
        self, prober: PartProber, function: Callable[..., Any], config: ComparisonConfig
    ) -> None:
        self._prober = prober
        self._function = function
        self._config = config
        self._has_passes = has_passes(function)
        self._blamed: dict[tuple[Any, str], GuiltyOperation] = {}

    def add(self, guilty: GuiltyOperation, suspect: Suspect) -> GuiltyOperation:
        """Kernels and passes are looked for once for each operator, not at each place."""
        part, occasion = self._shown(suspect)
        if part is None or occasion is None:
            return guilty
        if not suspect.whole_graph:
            guilty = self._with_aten(guilty, part, occasion)
        if not self._prober.backend.inductor and not self._has_passes:
            return guilty
        key = (suspect.node.target, guilty.stage)
        known = self._blamed.get(key)
        if known is not None and guilty.alone and known.alone:
            words = f"as for {known.node}" if known.pass_name else known.attribution
            return dataclasses.replace(guilty, pass_name=known.pass_name, attribution=words)
        blamed = self._with_blame if self._prober.backend.inductor else self._with_pass
        found = blamed(guilty, suspect, part, occasion)
        self._blamed[key] = found
        return found

    def _shown(self, suspect: Suspect) -> tuple[GraphPart | None, PartCall | None]:
        if suspect.whole_graph and not self._has_passes:
            return None, None
        probe = self._again(suspect)
        return probe.part, probe.occasion

    def _again(self, suspect: Suspect) -> Probe:
        if suspect.whole_graph:
            return self._prober.whole_again()
        return self._prober.again(suspect.region)

    def _with_aten(
        self, guilty: GuiltyOperation, part: GraphPart, occasion: PartCall
    ) -> GuiltyOperation:
        backend = self._function
        graphs = aten_graphs(part, occasion, own_decompositions(backend))
        graph = None if graphs is None else getattr(graphs, guilty.stage)
        names = aten_names(graph)
        if graph is None or not names:
            return guilty
        node, trials = None, 0
        compiler = own_compiler(backend, guilty.stage)
        if compiler is not None:
            node, trials = self._wrong_aten(graph, compiler)
        return dataclasses.replace(guilty, aten=names, aten_node=node, trials=trials)

    def _wrong_aten(
        self, graph: GraphRecord, compiler: Callable[..., Any]
    ) -> tuple[str | None, int]:
        """The backend is asked about each ATen operator, side by side."""
        counted = CountedBackend(compiler)
        try:
            anatomy = examine(graph.module, graph.calls[0])
            prober = PartProber(graph, anatomy, counted, self._config, train=False)
            units = [anatomy.unit(number) for number in range(anatomy.units)]
            probe = prober.apart([unit for unit in units if anatomy.computing(unit)])
        except Exception:  # The border to operators that no one runs outside of their graph.
            return None, counted.calls
        for unit in units:
            if any(probe.concerns(wrong, unit) for wrong in probe.wrong):
                [*_, node] = anatomy.computing(unit)
                return f"{node.name} ({node.target})", counted.calls
        return None, counted.calls

    def _with_blame(
        self, guilty: GuiltyOperation, suspect: Suspect, part: GraphPart, occasion: PartCall
    ) -> GuiltyOperation:
        reference = self._prober.again(suspect.region).reference
        if reference is None:
            return guilty
        kernel = self._code(part, occasion, guilty.stage)
        blame = find_blame(self._good(part, occasion, reference, suspect), limit_s=_LIMIT_S)
        return dataclasses.replace(
            guilty,
            pass_name=blame.name,
            attribution=blame.words,
            kernel=kernel,
            trials=guilty.trials + blame.trials + 1,
        )

    def _with_pass(
        self, guilty: GuiltyOperation, suspect: Suspect, part: GraphPart, occasion: PartCall
    ) -> GuiltyOperation:
        reference = self._again(suspect).reference
        if reference is None:
            return guilty
        good = self._good(part, occasion, reference, suspect)
        blame = find_pass(good, self._function, limit_s=_LIMIT_S)  # type: ignore[arg-type]
        return dataclasses.replace(
            guilty,
            pass_name=blame.name,
            attribution=blame.words,
            trials=guilty.trials + blame.trials,
        )

    def _good(
        self, part: GraphPart, occasion: PartCall, reference: Reference, suspect: Suspect
    ) -> Callable[[Callable[..., Any]], bool]:
        several = len(suspect.region) > 1 or suspect.whole_graph

        def good(backend: Callable[..., Any]) -> bool:
            try:
                with uncached():
                    with self._prober.graph.asked():
                        function = compile_part(backend, part, occasion)
                    results = run_part(function, occasion)
            except Exception:  # A pass that is left out may leave what the next cannot take.
                return False
            verdict = compare(part, occasion, reference, results, self._config, several=several)
            return not verdict.wrong

        return good

    def _code(self, part: GraphPart, occasion: PartCall, stage: str) -> str | None:
        try:
            with uncached(), noted_code() as found:
                with self._prober.graph.asked():
                    function = compile_part(self._function, part, occasion)
                run_part(function, occasion)
        except Exception:  # It has been compiled before; what it needs may be gone.
            return None
        if not found:
            return None
        return found[-1 if stage == "backward" else 0][:_MOST_CODE]


@dataclass
class AtenGraphs:
    """Forward (or inference) and backward."""

    forward: GraphRecord | None = None
    backward: GraphRecord | None = None


def aten_graphs(
    part: GraphPart, occasion: PartCall, decompositions: Any = None
) -> AtenGraphs | None:
    """None where AOTAutograd does not take the part."""
    found = AtenGraphs()

    def keep(name: str) -> Callable[..., Any]:
        def compiler(module: GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
            graph = GraphRecord(0, copy_module(module))
            setattr(found, name, graph)

            def run(*values: Any) -> Any:
                graph.calls.append(RecordedCall(copied_values(values), CallModes.now()))
                return module(*values)

            return run

        return compiler

    def backend(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_through_aot(
            module,
            inputs,
            forward=keep("forward"),
            backward=keep("backward"),
            inference=keep("forward"),
            decompositions=decompositions,
        )

    try:
        run_part(compile_part(backend, part, occasion), occasion)
    except Exception:  # The border to torch, which may refuse a part in any way.
        return None
    return found


def aten_names(graph: GraphRecord | None) -> tuple[str, ...]:
    """Its operators, in order."""
    if graph is None:
        return ()
    nodes = [n for n in graph.module.graph.nodes if n.op == "call_function"]
    names = [str(node.target) for node in nodes]
    return tuple(name for name in names if "getitem" not in name)


def own_compiler(backend: Any, stage: str) -> Callable[..., Any] | None:
    """What a backend made by `aot_autograd` gives ATen graphs to; None where it is another kind."""
    given = getattr(backend, "kwargs", None)
    if not isinstance(given, dict) or "fw_compiler" not in given:
        return None
    compiler = given["fw_compiler"]
    if stage == "backward":
        compiler = given.get("bw_compiler") or compiler
    return _unboxed(compiler)


def own_decompositions(backend: Any) -> Any:
    given = getattr(backend, "kwargs", None)
    if isinstance(given, dict):
        found = given.get("decompositions")
    else:
        found = getattr(backend, "decompositions", None)  # An adapter has them as a setting.
    return found() if callable(found) else found


def _unboxed(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """AOTAutograd hands over inputs in a list; graphs of ours are called plainly."""

    def compile_plain(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        function: Callable[..., Any] = compiler(module, list(inputs))
        if not getattr(function, "_boxed_call", False):
            return function

        def run(*values: Any) -> Any:
            return function(list(values))

        return run

    return compile_plain


@runtime_checkable
class HasPasses(Protocol):
    """A backend that can leave passes out."""

    @property
    def passes(self) -> Sequence[str]: ...

    def without(self, names: Sequence[str]) -> Callable[..., Any]: ...


def has_passes(backend: object) -> bool:
    try:
        return isinstance(backend, HasPasses) and bool(tuple(backend.passes))
    except Exception:  # The border to a plugin: a library that can't be loaded, for one.
        return False


def find_pass(good: Good, backend: HasPasses, *, limit_s: float) -> Blame:
    """Each trial compiles the part once. A pass is named only if the part is wrong with all passes
    and right without that one."""
    search = _PassSearch(good, backend, limit_s)
    try:
        name, words = search.run()
    except TooManyTrials as error:
        name, words = None, str(error)
    except Exception as error:  # The border to a plugin.
        said = " ".join(str(error).split())[:200]
        name, words = None, f"leaving out passes failed: {type(error).__name__}: {said}"
    return Blame(name, words, search.trials.count)


class _PassSearch:
    def __init__(self, good: Good, backend: HasPasses, limit_s: float) -> None:
        self.trials = Trials(good, limit_s, _MOST_TRIALS)
        self._backend = backend
        self._passes = tuple(backend.passes)

    def run(self) -> tuple[str | None, str]:
        if self._right_without([]):
            return None, RIGHT_ALONE
        if not self._right_without(self._passes):
            return None, "it is wrong even without any of the backend's passes"
        found = [name for name in self._passes if self._right_without([name])]
        if len(found) == 1:
            [name] = found
            return name, f"right without the pass {name}, wrong with all of them"
        if found:
            among = ", ".join(found)
            for name in self._turning(found):
                return name, (
                    f"right without any one of {among}; added in order, the passes before "
                    f"{name} leave it right and {name} makes it wrong"
                )
            return None, f"right without any one of the passes {among}"
        return None, f"right only without the passes {' and '.join(self._needed())} together"

    def _turning(self, found: list[str]) -> list[str]:
        """Where several must all run for it to go wrong: the one with which it turns wrong, when
        the passes are added in the order in which they run."""
        return [
            name
            for name in found
            if self._right_without(self._passes[self._passes.index(name) :])
            and not self._right_without(self._passes[self._passes.index(name) + 1 :])
        ]

    def _needed(self) -> list[str]:
        """The fewest that have to be left out, found by putting back one after the other."""
        out = list(self._passes)
        for name in self._passes:
            fewer = [other for other in out if other != name]
            if self._right_without(fewer):
                out = fewer
        return out

    def _right_without(self, names: Sequence[str]) -> bool:
        return self.trials.go_right(self._backend.without(list(names)))
