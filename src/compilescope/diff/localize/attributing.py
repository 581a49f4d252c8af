"""Goes below the operation: its ATen operators, the pass that is responsible, Inductor's code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from compilescope.diff.config import ComparisonConfig
from compilescope.diff.localize.comparing import compare
from compilescope.diff.localize.hunting import Suspect
from compilescope.diff.localize.passes import find_pass, has_passes
from compilescope.diff.localize.probing import Probe, Prober
from compilescope.diff.localize.records import Guilty
from compilescope.torchapi.bisecting.anatomy import examine
from compilescope.torchapi.bisecting.aten import (
    aten_graphs,
    aten_names,
    own_compiler,
    own_decompositions,
)
from compilescope.torchapi.bisecting.blame import find_blame, noted_code
from compilescope.torchapi.bisecting.compiling import compile_part, uncached
from compilescope.torchapi.bisecting.evaluating import Occasion, Reference, run_part
from compilescope.torchapi.bisecting.parts import Part
from compilescope.torchapi.bisecting.recording import RecordedGraph
from compilescope.torchapi.trials.backends import CountedBackend

_LIMIT_S = 180.0
_MOST_CODE = 200_000


class Attribution:
    """Of the suspects of one graph."""

    def __init__(
        self, prober: Prober, function: Callable[..., Any], config: ComparisonConfig
    ) -> None:
        self._prober = prober
        self._function = function
        self._config = config
        self._has_passes = has_passes(function)
        self._blamed: dict[tuple[Any, str], Guilty] = {}

    def add(self, guilty: Guilty, suspect: Suspect) -> Guilty:
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

    def _shown(self, suspect: Suspect) -> tuple[Part | None, Occasion | None]:
        if suspect.whole_graph and not self._has_passes:
            return None, None
        probe = self._again(suspect)
        return probe.part, probe.occasion

    def _again(self, suspect: Suspect) -> Probe:
        if suspect.whole_graph:
            return self._prober.whole_again()
        return self._prober.again(suspect.region)

    def _with_aten(self, guilty: Guilty, part: Part, occasion: Occasion) -> Guilty:
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
        self, graph: RecordedGraph, compiler: Callable[..., Any]
    ) -> tuple[str | None, int]:
        """The backend is asked about each ATen operator, side by side."""
        counted = CountedBackend(compiler)
        try:
            anatomy = examine(graph.module, graph.calls[0])
            prober = Prober(graph, anatomy, counted, self._config, train=False)
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
        self, guilty: Guilty, suspect: Suspect, part: Part, occasion: Occasion
    ) -> Guilty:
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
        self, guilty: Guilty, suspect: Suspect, part: Part, occasion: Occasion
    ) -> Guilty:
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
        self, part: Part, occasion: Occasion, reference: Reference, suspect: Suspect
    ) -> Callable[[Callable[..., Any]], bool]:
        several = len(suspect.region) > 1 or suspect.whole_graph

        def good(backend: Callable[..., Any]) -> bool:
            try:
                with uncached():
                    results = run_part(compile_part(backend, part, occasion), occasion)
            except Exception:  # A pass that is left out may leave what the next cannot take.
                return False
            opinion = compare(part, occasion, reference, results, self._config, several=several)
            return not opinion.wrong

        return good

    def _code(self, part: Part, occasion: Occasion, stage: str) -> str | None:
        try:
            with uncached(), noted_code() as found:
                run_part(compile_part(self._function, part, occasion), occasion)
        except Exception:  # It has been compiled before; what it needs may be gone.
            return None
        if not found:
            return None
        return found[-1 if stage == "backward" else 0][:_MOST_CODE]
