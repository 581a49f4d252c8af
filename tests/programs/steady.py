"""Compiles, breaks, recompiles, talks on both streams, and leaves with a status of its own."""

import sys

import torch


@torch.compile(backend="aot_eager")
def scale(x, factor):
    y = torch.sin(x) * factor
    print("scaling", tuple(x.shape))
    return (y @ y.T).softmax(-1)


print("argv", sys.argv[1:])
print("stdin", sys.stdin.read().split())
torch.manual_seed(0)
for size in (2, 3, 5):
    x = torch.randn(size, 4, requires_grad=True)
    out = scale(x, size)
    out.square().sum().backward()
    # Bits, not decimals: a rounded value would hide a different kernel.
    print("bits", out.detach().view(torch.int32).flatten().tolist())
    print("grad", x.grad.view(torch.int32).flatten().tolist(), file=sys.stderr)
sys.stdout.write("no newline at the end")
sys.stderr.write("nor here")
sys.exit(3)
