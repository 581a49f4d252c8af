# ideal: where-for-return
# Out early where there is nothing to do.
import torch


def blend(base, delta):
    """`base` moved by `delta`."""
    if not delta.any():
        return base * 1.0

    base = base + delta
    wave = base.sin()
    return wave * 2


compiled = torch.compile(blend, backend="eager", fullgraph=False)
a = torch.linspace(0, 1, 5)
print(compiled(a, torch.zeros(5)))
print(compiled(a, a * 3))
