"""Passes as many hooks as one small program can."""

import sys
import traceback

import torch
import torch._dynamo


def scale(x, n):
    y = x * n
    print("a break")
    return y + 1


def whole(x):
    print("in the way")
    return x


def lowered(x):
    return torch.relu(x) + 1


def main():
    x = torch.ones(3)
    compiled = torch.compile(scale, backend="eager")
    for n in (1, 2, 3):
        print(compiled(x, n).tolist())
    try:
        torch.compile(whole, backend="eager", fullgraph=True)(x)
    except Exception:
        traceback.print_exc()
    torch._dynamo.reset()
    with torch.compiler.set_stance("force_eager"):
        print(compiled(x, 4).tolist())
    leaf = x.clone().requires_grad_()
    torch.compile(lowered, backend="aot_eager")(leaf).sum().backward()
    print(leaf.grad.tolist())
    torch.nn.ReLU().compile(backend="eager")
    sys.stderr.write("the end\n")


if __name__ == "__main__":
    main()
