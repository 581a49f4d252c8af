"""How long `compare_tensors` takes with all its metrics, and how much memory beside the tensors.

Ours, ours without the compiled loop, torch.testing.assert_close, torch.equal and a naive version
(whole-tensor operations), each in a process of its own so that peaks of memory do not mix, the
rounds interleaved:

    python benchmarks/compare_tensors.py [--gib 1] [--dtype float32] [--rounds 3] [--dims 2]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

CONTENDERS = ("ours", "without C", "assert_close", "equal", "naive")


def naive(a, b):  # type: ignore[no-untyped-def]
    """What one writes first: every figure from operations on whole tensors."""
    import torch

    a64, b64 = a.double(), b.double()
    error = (a64 - b64).abs()
    relative = error / a64.abs().clamp_min(1e-30)
    worst = torch.topk(error.flatten(), 5)
    return {
        "max_abs": error.max().item(),
        "mean_abs": error.mean().item(),
        "max_rel": relative.max().item(),
        "mean_rel": relative.mean().item(),
        "rmse": error.square().mean().sqrt().item(),
        "cosine": (a64 * b64).sum().item() / (a64.norm() * b64.norm()).item(),
        "mismatched": (error > 1e-5 + 1.3e-6 * a64.abs()).sum().item(),
        "nan": (a.isnan() != b.isnan()).sum().item(),
        "inf": (a.isinf() != b.isinf()).sum().item(),
        "worst": worst.indices.tolist(),
        "profiles": [error.mean([d for d in range(a.dim()) if d != k]) for k in range(a.dim())],
    }


def call_of(name: str) -> Callable[..., object]:
    import torch

    if name in ("ours", "without C"):
        from compilescope.measure.tensors import native_pass
        from compilescope.measure.tensors.comparison import compare_tensors

        if name == "without C":
            native_pass._compiler = lambda: None  # type: ignore[assignment]
        return compare_tensors
    if name == "assert_close":
        close: Callable[..., object] = torch.testing.assert_close
        return close
    return torch.equal if name == "equal" else naive


def tensors(gib: float, dtype: str, dims: int):  # type: ignore[no-untyped-def]
    """A pair within tolerance, filled piece by piece so that the start has no peak of its own."""
    import torch

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    count = int(gib * 2**30) // torch.empty((), dtype=kind).element_size()
    inner = 1024 if dims > 1 else 1
    shape = {1: (count,), 2: (count // inner, inner)}.get(dims, (count // inner // 32, 32, inner))
    a = torch.empty(shape, dtype=kind)
    b = torch.empty(shape, dtype=kind)
    flat_a, flat_b = a.view(-1), b.view(-1)
    for start in range(0, flat_a.numel(), 1 << 20):
        piece = torch.randn(min(1 << 20, flat_a.numel() - start))
        flat_a[start : start + (1 << 20)] = piece.to(kind)
        flat_b[start : start + (1 << 20)] = (piece * (1 + 1e-7)).to(kind)
    return a, b


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def serve(name: str, options: argparse.Namespace) -> None:
    """Answers each line on stdin with one timed call."""
    a, b = tensors(options.gib, options.dtype, options.dims)
    if name == "equal":
        b.copy_(a)  # It stops at the first difference.
    call = call_of(name)
    warm_a, warm_b = tensors(options.warm_gib, options.dtype, options.dims)
    begun = time.perf_counter()
    before = peak_kib()
    if options.warm_gib:
        call(warm_a, warm_b)  # Imports and compiles what it needs.
    warm_s = time.perf_counter() - begun
    print(json.dumps({"warm_s": warm_s}), flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        call(a, b)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        extra = peak_kib() - before
        print(json.dumps({"wall": wall, "cpu": cpu, "extra_mib": extra / 1024}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=1.0, help="size of each tensor")
    parser.add_argument("--warm-gib", type=float, default=1 / 32, help="0: no first call")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--dims", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=CONTENDERS, action="append")
    parser.add_argument("--serve", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options)
        return
    found = measure(options, options.only or CONTENDERS)
    base = statistics.median(r["cpu"] for r in found.get("equal", [{"cpu": float("nan")}]))
    print(f"{'':14}{'CPU s':>9}{'wall s':>9}{'x equal':>9}{'extra MiB':>11}   medians")
    for name, results in found.items():
        cpu, wall = (statistics.median(r[key] for r in results) for key in ("cpu", "wall"))
        extra = max(r["extra_mib"] for r in results)
        print(f"{name:14}{cpu:9.2f}{wall:9.2f}{cpu / base:9.1f}{extra:11.1f}")


def measure(
    options: argparse.Namespace, names: tuple[str, ...]
) -> dict[str, list[dict[str, float]]]:
    """One process each, one after another: all pairs at a time would not fit everywhere."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            command = [sys.executable, __file__, "--serve", name, "--dtype", options.dtype]
            command += ["--gib", str(options.gib), "--warm-gib", str(options.warm_gib)]
            command += ["--dims", str(options.dims)]
            done = subprocess.run(command, input="go\n", capture_output=True, text=True, check=True)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            found[name].append({**lines[-1], **lines[0]})
    for name, results in found.items():
        warm = ", ".join(f"{r['warm_s']:.1f}" for r in results)
        print(f"first call on {options.warm_gib:g} GiB, {name}: {warm} s", file=sys.stderr)
    return found


if __name__ == "__main__":
    main()
