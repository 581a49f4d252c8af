import torch

from compilescope.apps.learn.kit import first_call_seconds, median_ms


def pays_after(fn, x, backend):
    compiled = torch.compile(fn, backend=backend)
    first = 1000 * first_call_seconds(compiled, x)
    return first / median_ms({"compiled": lambda: compiled(x)})["compiled"]
