"""The small compiler as a backend: `torch.compile(f, backend="compilescope_mini")`.

An island is compiled for each set of sizes and strides that it is called with.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.fx import GraphModule, Node

from compilescope.backends.adapters.base import AcceleratorAdapter
from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.backends.adapters.contract import CompilationResult, setting_names
from compilescope.backends.adapters.island import AdapterError
from compilescope.backends.mini.builder import BY_TORCH, TO_TORCH, Untranslatable
from compilescope.backends.mini.library import (
    Library,
    LibraryFunction,
    MiniError,
    kernel_folder,
    load_library,
)
from compilescope.backends.mini.translation import OPS, MiniOutput, Translation, refusal, translate
from compilescope.base.errors import ToolError
from compilescope.base.settings import read_mini_settings
from compilescope.instrument.torchapi.calls.operators import decompositions_for, plain_attention
from compilescope.instrument.torchapi.graphs.values import symbols_in

_counting = threading.Lock()


@dataclass
class MiniCounts:
    """What an adapter has compiled so far."""

    islands: int = 0
    compiled: int = 0
    """Graphs given to the small compiler: one for each set of sizes and strides of an island."""
    respecialized: int = 0
    """Of them, those for sizes or strides that came after the first."""
    interpreted: int = 0
    """Run by the interpreter, because no machine code could be made."""
    seconds: float = 0.0
    """Spent compiling."""

    def note(self, info: Mapping[str, Any], *, again: bool) -> None:
        with _counting:
            self.compiled += 1
            self.respecialized += again
            self.interpreted += bool(info.get("fallback"))
            self.seconds += float(info.get("compile_seconds") or 0.0)


class IslandFunction:
    """Called with the island's inputs; gives its outputs."""

    def __init__(
        self,
        module: GraphModule,
        library: Library,
        options: Mapping[str, str],
        counts: MiniCounts,
    ) -> None:
        self._module = module
        self._library = library
        self._options = dict(options)
        self._counts = counts
        self._made: dict[Any, CompiledIsland] = {}
        self._lock = threading.Lock()

    def prepare(self, inputs: Sequence[Any]) -> LibraryFunction:
        """Compile for these, which may be without numbers. Raises Untranslatable, MiniError."""
        return self._for(_signature(inputs), inputs).function

    def __call__(self, *inputs: Any) -> tuple[torch.Tensor, ...]:
        signature = _signature(inputs)
        made = self._made.get(signature)
        if made is None:
            made = self._for(signature, inputs)
        return made.run(inputs)

    def _for(self, signature: Any, inputs: Sequence[Any]) -> CompiledIsland:
        with self._lock:
            made = self._made.get(signature)
            if made is None:
                translation = translate(self._module, inputs)
                function = self._library.compile(translation.text, self._options)
                self._counts.note(function.info, again=bool(self._made))
                made = self._made[signature] = CompiledIsland(translation, function)
            return made


class CompiledIsland:
    """An island for one set of sizes and strides."""

    def __init__(self, translation: Translation, function: LibraryFunction) -> None:
        self.function = function
        self._tensors = translation.tensors
        self._outputs = translation.outputs
        self._empty = [
            functools.partial(torch.empty, output.shape, dtype=TO_TORCH[output.dtype])
            for output in translation.outputs
        ]
        self._turned = any(output.order is not None for output in translation.outputs)

    def run(self, inputs: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        given = [_plain(inputs[number]) for number in self._tensors]
        results = [empty() for empty in self._empty]
        self.function.run([t.data_ptr() for t in given], [r.data_ptr() for r in results])
        return tuple(map(_turned, results, self._outputs) if self._turned else results)


def _turned(result: torch.Tensor, output: MiniOutput) -> torch.Tensor:
    return result if output.order is None else result.permute(output.order)


def _plain(value: torch.Tensor) -> torch.Tensor:
    """Memory that holds the tensor's own numbers."""
    if not value.is_cpu:
        raise TypeError(f"an input is on {value.device}; the small compiler works on the CPU")
    return value.resolve_neg() if value.is_neg() else value


def _signature(inputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        [
            (value.shape, value.stride()) if isinstance(value, torch.Tensor) else value
            for value in inputs
        ]
    )


log = logging.getLogger(__name__)
TAKEN_APART = (
    "gelu", "gelu_backward", "silu", "silu_backward", "leaky_relu", "leaky_relu_backward", "elu",
    "elu_backward", "hardtanh", "hardtanh_backward", "hardswish", "hardswish_backward",
    "hardsigmoid", "hardsigmoid_backward", "softplus", "softplus_backward", "mish",
    "mish_backward", "sigmoid_backward", "tanh_backward", "threshold_backward",
    "logit_backward", "log_sigmoid_forward", "log_sigmoid_backward", "native_layer_norm",
    "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward",
    "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training", "native_batch_norm_backward",
    "_softmax_backward_data", "_log_softmax_backward_data", "_safe_softmax",
    "native_dropout_backward", "nll_loss_forward", "nll_loss_backward", "mse_loss",
    "mse_loss_backward", "smooth_l1_loss", "smooth_l1_loss_backward", "huber_loss",
    "huber_loss_backward", "binary_cross_entropy", "binary_cross_entropy_backward",
    "binary_cross_entropy_with_logits", "logsumexp", "tril", "triu", "addcmul", "addcdiv",
    "addmv", "addr", "lerp", "nan_to_num", "slice_backward", "select_backward", "isfinite",
    "diag_embed", "roll", "rot90", "aminmax", "norm", "linalg_vector_norm", "frac", "trace",
    "eye", "linspace", "logspace", "glu", "glu_backward", "logaddexp", "xlogy", "deg2rad",
    "rad2deg", "heaviside", "hypot", "sinc", "special_entr", "pixel_shuffle",
    "pixel_unshuffle", "_fused_rms_norm", "_fused_rms_norm_backward",
)  # fmt: skip
"""ATen operators that AOTAutograd takes apart into those of the table."""
_told: set[str] = set()


class MiniAdapter(AcceleratorAdapter):
    """`torch.compile(model, backend=MiniAdapter())`: a C++ compiler small enough to read.

    Settings that are left out are taken from the environment (docs/guides/mini.md).
    """

    def __init__(
        self,
        *,
        off: Iterable[str] | None = None,
        planted: str | None = None,
        threads: int | None = None,
        compiler: str | None = None,
        flags: str = "",
        runs: Literal["compiled", "interpreted"] = "compiled",
        without_compiler: Literal["interpret", "raise"] = "interpret",
        **settings: Any,
    ) -> None:
        """`off`: passes that don't run. `planted`: a pass that makes its documented mistake.
        `compiler`: the C++ compiler's name or path. `flags`: in place of the usual ones. `runs`:
        machine code, or the interpreter. `without_compiler`: what happens where generated code
        can't be compiled."""
        if isinstance(off, str):
            raise TypeError("off takes a list of passes, not a string")
        self._off = None if off is None else tuple(off)
        self._planted = planted
        self._threads = threads
        self._compiler = compiler
        self._flags = flags
        self._runs = runs
        self._without_compiler = without_compiler
        self.counts = MiniCounts()
        super().__init__(**settings)

    @functools.cached_property
    def decompositions(self) -> dict[Any, Callable[..., Any]]:  # type: ignore[override]
        """Looked up when they are first needed; a setting of that name goes before it."""
        return decompositions_for(TAKEN_APART)

    def get_capabilities(self) -> AcceleratorCapabilities:
        if self.capabilities is not None:
            return super().get_capabilities()
        return AcceleratorCapabilities(
            "mini", list(BY_TORCH), supported_ops=OPS, custom_constraints=[_check]
        )

    @property
    def passes(self) -> tuple[str, ...]:
        """The compiler's passes in the order in which they run, without those that are off."""
        off = self._settled()["off"].split(",")
        return tuple(name for name in self._library.passes if name not in off)

    def without(self, names: Sequence[str]) -> MiniAdapter:
        """The same adapter without these passes as well."""
        off = [name for name in self._settled()["off"].split(",") if name]
        other = MiniAdapter(
            off=[*off, *names],
            planted=self._planted,
            threads=self._threads,
            compiler=self._compiler,
            flags=self._flags,
            runs=self._runs,
            without_compiler=self._without_compiler,
        )
        for name in setting_names():
            setattr(other, name, getattr(self, name))
        return other

    def __call__(
        self, gm: GraphModule, inputs: Sequence[Any], **options: Any
    ) -> Callable[..., Any]:
        try:
            self._check_passes(self._settled(), self._library)
        except ToolError as error:
            raise AdapterError(type(self).__name__, str(error), error.hint) from error
        with plain_attention():
            return super().__call__(gm, inputs, **options)

    def compile(self, gm: GraphModule, inputs: list[Any]) -> CompilationResult:
        run = IslandFunction(gm, self._library, self._settled(), self.counts)
        self.counts.islands += 1
        if any(map(_is_symbolic, inputs)):
            eager = gm.forward
            words = {"sizes": "dynamic: compiled at each call with new sizes"}
            return CompilationResult("success", run, metadata=words, fallback_fn=eager)
        try:
            info = run.prepare(inputs).info
        except (Untranslatable, MiniError) as error:
            return CompilationResult("failed", violations=[str(error)])
        warnings = []
        if info["fallback"]:
            warnings.append(f"runs in the interpreter: {info['fallback']}")
            _say_once(f"compilescope_mini: no machine code, so {warnings[0]}")
        return CompilationResult("success", run, warnings=warnings, metadata=_metadata(info))

    @property
    def _library(self) -> Library:
        return load_library(self._settled()["cxx"])

    def _settled(self) -> dict[str, str]:
        """The options of c_api.h."""
        said = read_mini_settings()
        threads = self._threads
        if threads is None:
            threads = said.threads or torch.get_num_threads()
        return {
            "backend": "interpreter" if self._runs == "interpreted" else "compiler",
            "off": ",".join(said.off if self._off is None else self._off),
            "planted": said.planted if self._planted is None else self._planted,
            "cache": str(kernel_folder()),
            "cxx": said.compiler if self._compiler is None else self._compiler,
            "flags": self._flags,
            "threads": str(threads),
            "fallback": "error" if self._without_compiler == "raise" else "interpreter",
        }

    def _check_passes(self, options: dict[str, str], library: Library) -> None:
        for name in [*options["off"].split(","), options["planted"]]:
            if name and name not in library.passes:
                raise ToolError(
                    f"The small compiler has no pass named {name!r}.",
                    hint=f"Its passes are {', '.join(library.passes)}.",
                )


def _check(node: Node) -> str | None:
    """The constraint that no list of names and dtypes can say."""
    why = refusal(node)
    if why is not None and "works on the CPU" in why:
        _say_once(f"compilescope_mini: {why}; what needs it stays on the host")
    return why


_check.__name__ = "mini"


def _is_symbolic(value: Any) -> bool:
    return not isinstance(value, torch.Tensor) or bool(symbols_in(value))


def _metadata(info: dict[str, Any]) -> dict[str, Any]:
    passes = "; ".join(each["summary"] for each in info["passes"] if each["changes"])
    return {
        "kernels": info["kernels"],
        "nodes": f"{info['nodes_before']} -> {info['nodes_after']}",
        "working memory": f"{info['working_bytes']} bytes",
        "from the cache": "yes" if info["cached"] else "no",
        "source": info["source_path"],
        "passes": passes,
    }


def _say_once(words: str) -> None:
    if words not in _told:
        _told.add(words)
        log.warning("%s", words)
