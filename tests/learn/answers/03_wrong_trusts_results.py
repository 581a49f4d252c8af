import torch

from compilescope.apps.learn.kit import median_ms


def fastest(fn, x, backends):
    times = {}
    for name, backend in backends.items():
        torch.compiler.reset()
        compiled = torch.compile(fn, backend=backend)
        times[name] = median_ms({name: lambda: compiled(x)}, runs=3)[name]
    return min(times, key=times.get)
