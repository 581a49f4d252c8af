"""Devices against real models: what is refused, and how much memory a graph takes.

BERT-base, ResNet-18 and a Mamba, for inference and for training, each as Dynamo's graph and as
AOTAutograd's. Counts are held against a run on real tensors, bytes against the CPU allocator.
"""

from __future__ import annotations

import linecache
import platform
from collections import Counter

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(900)]

pytest.importorskip("transformers", reason="the models need transformers (extra: models)")

from compilescope.backends.device_files import shipped_devices  # noqa: E402
from compilescope.knowledge.rules.hardware import memory  # noqa: E402
from compilescope.knowledge.rules.hardware.checks import check_graph, constraints_of  # noqa: E402
from compilescope.knowledge.rules.hardware.constraint import Breach  # noqa: E402
from compilescope.knowledge.rules.hardware.memory import peak_memory  # noqa: E402
from compilescope.record.stack import origin_of  # noqa: E402
from models.accelerated import (  # noqa: E402
    MODELS,
    Captured,
    aten_graphs,
    dynamo_graph,
    measured_peak,
)
from models.brute_force import count_facts  # noqa: E402

MOST_OFF = 0.10
CASES = [
    pytest.param(
        (name, training, stage), id=f"{name}-{'training' if training else 'inference'}-{stage}"
    )
    for name in MODELS
    for training in (False, True)
    for stage in ("dynamo", "aten")
]


@pytest.fixture(scope="module", params=CASES)
def graphs(request: pytest.FixtureRequest) -> list[Captured]:
    """All graphs of one model: forward and backward, where it is trained below Dynamo."""
    name, training, stage = request.param
    return [dynamo_graph(name, training)] if stage == "dynamo" else aten_graphs(name, training)


def test_counts_agree_with_a_run_on_real_tensors(graphs: list[Captured]) -> None:
    total: Counter[str] = Counter()
    for captured in graphs:
        with captured.mode():
            facts = count_facts(captured.module, captured.inputs, shipped_devices())
        for device in shipped_devices():
            found = check_graph(captured.graph, constraints_of(device))
            counted = Counter(breach.rule for breach in found)
            assert counted == facts[device.name], (captured.stage, device.name)
            assert all(breach.severity != "unknown" for breach in found)
            for breach in found:
                assert breach.found and breach.allowed and breach.remedy
                check_place(breach)
            total += counted
    assert total["dtype"] and total["shape"]


def check_place(breach: Breach) -> None:
    """It lies on a line of the model's own source, and the line is the one that is shown."""
    frame = breach.frame
    assert frame is not None and origin_of(frame.file) in ("library", "user"), breach
    assert "transformers" in frame.file
    line = linecache.getline(frame.file, frame.line).strip()
    assert line and frame.source.strip() in line, breach


def test_peak_memory_agrees_with_the_allocator(
    graphs: list[Captured], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What kernels take for themselves is known of torch's x86 build: on Arm, matrix products copy
    # their weights too. Elsewhere neither side has it.
    workspace = platform.machine() in ("x86_64", "AMD64")
    if not workspace:
        monkeypatch.setattr(memory, "_workspace_bytes", lambda call: 0)
    for captured in graphs:
        found = peak_memory(captured.graph)
        inputs, beside = measured_peak(captured, workspace=workspace)
        assert found.unknown == ()
        made = found.peak_bytes - found.inputs_bytes
        figures = (
            f"{captured.stage}: {found.peak_bytes / 1e6:.1f} MB, "
            f"measured {(inputs + beside) / 1e6:.1f} MB; beside inputs {made / 1e6:.2f} MB, "
            f"measured {beside / 1e6:.2f} MB ({100 * (made / beside - 1):+.1f} %)"
        )
        print(figures)
        assert abs(found.peak_bytes / (inputs + beside) - 1) <= MOST_OFF, figures
        # Weights are easy to count: the rest alone must hold as well.
        assert abs(made / beside - 1) <= MOST_OFF, figures
        assert found.frame is not None and "transformers" in found.frame.file
