"""One break, three calls deep, reached through two callers: one place, many reports."""

import torch


def note(value):
    torch._dynamo.graph_break()
    return value + 1


def inner(x):
    return note(x * 2)


def left(x):
    return inner(x).sin()


def right(x):
    return inner(x.cos())


def step(x):
    return left(x) + right(x)


def build():
    torch.manual_seed(0)
    return step, (torch.randn(16),)


def main():
    function, args = build()
    compiled = torch.compile(function, backend="aot_eager")
    for _ in range(3):
        out = compiled(*args)
    print("sum", round(float(out.sum()), 3))


if __name__ == "__main__":
    main()
