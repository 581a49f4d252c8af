"""The figures of docs/reference/devices.md: what real models violate and need, against runs.

    python benchmarks/device_figures.py [MODEL ...]

BERT-base, ResNet-18 and a Mamba from `transformers`, with random weights: for inference and for
training, as Dynamo's graph and as AOTAutograd's. Violations are counted by the constraints and by
a run on real tensors (`tests/models/brute_force.py`), bytes by liveness and by the CPU allocator.
Two tables in Markdown; the exit status is 1 where a count differs or a peak is more than 10 % off.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from compilescope.backends.device_files import shipped_devices
from compilescope.knowledge.rules.hardware.checks import check_graph, constraints_of
from compilescope.knowledge.rules.hardware.memory import peak_memory
from models.accelerated import MODELS, Captured, aten_graphs, dynamo_graph, measured_peak
from models.brute_force import count_facts

MOST_OFF = 0.10
RULES = ("operators", "dtype", "shape", "layout", "memory")


def main() -> int:
    asked = sys.argv[1:] or list(MODELS)
    devices = shipped_devices()
    counts = [
        f"| graph | nodes | {' | '.join(device.name for device in devices)} |",
        "|---" * (2 + len(devices)) + "|",
    ]
    peaks = [
        "| graph | computed | measured | error | computed, beside inputs | measured | error |",
        "|---" * 7 + "|",
    ]
    good = True
    for name in asked:
        for training in (False, True):
            for captured in [dynamo_graph(name, training), *aten_graphs(name, training)]:
                stage = captured.stage if captured.stage == "dynamo" else f"ATen {captured.stage}"
                title = f"{name}, {'training' if training else 'inference'}, {stage}"
                cells, equal = counted(captured)
                counts.append(f"| {title} | {len(captured.graph.nodes)} | {' | '.join(cells)} |")
                cells, close = weighed(captured)
                peaks.append(f"| {title} | {' | '.join(cells)} |")
                good = good and equal and close
                print(title, "done", file=sys.stderr)
    print(f"Violations: {', '.join(RULES)}.", "", *counts, "", "Peak memory.", "", *peaks, sep="\n")
    return 0 if good else 1


def counted(captured: Captured) -> tuple[list[str], bool]:
    """One cell a device, and whether the run on real tensors counted the same."""
    devices = shipped_devices()
    with captured.mode():
        facts = count_facts(captured.module, captured.inputs, devices)
    cells, equal = [], True
    for device in devices:
        found = Counter(b.rule for b in check_graph(captured.graph, constraints_of(device)))
        agreed = found == facts[device.name]
        equal = equal and agreed
        numbers = ", ".join(str(found[rule]) for rule in RULES)
        cells.append(numbers if agreed else f"{numbers} (run: {dict(facts[device.name])})")
    return cells, equal


def weighed(captured: Captured) -> tuple[list[str], bool]:
    """Computed and measured bytes with the error: in all, and without what was handed in."""
    found = peak_memory(captured.graph)
    inputs, beside = measured_peak(captured)
    pairs = [
        (found.peak_bytes, inputs + beside),
        (found.peak_bytes - found.inputs_bytes, beside),
    ]
    cells, close = [], True
    for computed, measured in pairs:
        error = computed / measured - 1
        close = close and abs(error) <= MOST_OFF
        cells += [f"{computed / 1e6:.1f} MB", f"{measured / 1e6:.1f} MB", f"{100 * error:+.2f} %"]
    return cells, close


if __name__ == "__main__":
    raise SystemExit(main())
