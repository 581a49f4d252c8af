"""Two values change at once: fixing the one that fails first leaves the other."""

import torch

MODE = {"scale": 2, "shift": 5}


def step(x):
    y = x * MODE["scale"]
    y = y.sin()
    return y + MODE["shift"]


def build():
    torch.manual_seed(0)
    return step, (torch.randn(16),)


def main():
    function, args = build()
    compiled = torch.compile(function, backend="aot_eager", dynamic=False)
    compiled(*args)
    MODE.update(scale=3, shift=7)
    out = compiled(*args)
    print("sum", round(float(out.sum()), 3))


if __name__ == "__main__":
    main()
