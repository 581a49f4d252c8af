"""Real models from `transformers` with random weights, their graphs, and what running one takes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
import transformers as tf

from compilescope.instrument.torchapi.calls.aten import with_calls
from compilescope.instrument.torchapi.graphs.fx import portable
from compilescope.record.graph import Graph

MODELS = ("bert-base", "resnet-18", "mamba")


@dataclass
class Captured:
    """A graph as torch runs it, with what it was called with, and as constraints read it."""

    stage: str
    module: torch.fx.GraphModule
    inputs: list[Any]
    graph: Graph
    training: bool

    def mode(self) -> Any:
        """A graph of AOTAutograd's has its gradients in itself."""
        return torch.set_grad_enabled(self.training and self.stage == "dynamo")

    def run(self) -> Any:
        with self.mode():
            return self.module(*self.inputs)


def build(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    if name == "bert-base":
        config = tf.BertConfig()
        return tf.BertModel(config), {"input_ids": _ids(config.vocab_size, 64)}
    if name == "resnet-18":
        sizes = [64, 128, 256, 512]
        config = tf.ResNetConfig(
            layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=sizes, num_labels=1000
        )
        images = torch.randn(2, 3, 224, 224)
        return tf.ResNetForImageClassification(config), {"pixel_values": images}
    # The layers of the 130M model, two of them.
    config = tf.MambaConfig(num_hidden_layers=2)
    return tf.MambaForCausalLM(config), {"input_ids": _ids(config.vocab_size, 24)}


def _ids(vocabulary: int, length: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (2, length))


def dynamo_graph(name: str, training: bool) -> Captured:
    """What Dynamo hands to a backend: one graph for each of these models."""
    found: list[Captured] = []

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        graph = with_calls(portable(module, saved=training), module)
        found.append(Captured("dynamo", module, inputs, graph, training))
        return module.forward

    _compile(name, training, backend)
    (captured,) = found
    return captured


def aten_graphs(name: str, training: bool) -> list[Captured]:
    """What AOTAutograd makes of it: forward and backward, or one for inference."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    found: list[Captured] = []

    def compiler(stage: str) -> Any:
        def keep(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
            graph = with_calls(portable(module), module)

            def run(*given: Any) -> Any:
                found.append(Captured(stage, module, list(given), graph, training))
                return module(*given)

            return make_boxed_func(run)

        return keep

    backend = aot_autograd(fw_compiler=compiler("forward"), bw_compiler=compiler("backward"))
    results = _compile(name, training, backend)
    if training:
        values = [v for v in results.values() if torch.is_tensor(v) and v.requires_grad]
        torch.stack([value.float().pow(2).mean() for value in values]).sum().backward()
    return found


def _compile(name: str, training: bool, backend: Any) -> Any:
    torch._dynamo.reset()
    model, inputs = build(name)
    model.train(training)
    with warnings.catch_warnings(), torch.set_grad_enabled(training):
        warnings.simplefilter("ignore")
        return torch.compile(model, backend=backend)(**inputs)


def measured_peak(captured: Captured, *, workspace: bool) -> tuple[int, int]:
    """Bytes of the inputs, and the most that the CPU allocator held beside them in a run; without
    `workspace`, but for what a kernel took and gave back by itself."""
    captured.run()  # What is made once only.
    with torch.profiler.profile(profile_memory=True) as profile:
        results = captured.run()
    changes: list[tuple[int, int, int, Any]] = []
    waiting = list(profile.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        waiting.extend(event.children)
        kind, fields = event.typed
        if str(kind).endswith("Allocation"):
            changes.append((event.start_time_ns, fields.ptr, fields.alloc_size, _kernel(event)))
    del results
    changes.sort(key=lambda item: item[0])
    now = peak = 0
    own = set() if workspace else _own_changes(changes)
    for number, (_, _, change, _) in enumerate(changes):
        if number not in own:
            now += change
            peak = max(peak, now)
    storages = [t.untyped_storage() for t in captured.inputs if torch.is_tensor(t)]
    return sum({s._cdata: s.nbytes() for s in storages}.values()), peak


def _kernel(event: Any) -> int | None:
    """The operator that an allocation happens in, and not the one that only makes the tensor."""
    above = event.parent
    while above is not None and above.name.startswith(("aten::empty", "aten::resize_", "[memory]")):
        above = above.parent
    return above.id if above is not None else None


def _own_changes(changes: list[tuple[int, int, int, Any]]) -> set[int]:
    """The places of what one and the same operator takes and gives back."""
    own: set[int] = set()
    held: dict[int, int] = {}
    for number, (_, pointer, size, kernel) in enumerate(changes):
        if size > 0:
            held[pointer] = number
            continue
        start = held.pop(pointer, None)
        if start is not None and kernel is not None and changes[start][3] == kernel:
            own |= {start, number}
    return own
