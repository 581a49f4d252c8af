"""A break that Dynamo cannot resume from: none of the loop around it is compiled."""

import torch


def anneal(x, factors):
    for factor in factors:
        x = x * factor
        if x.abs().max() < 0.1:
            x = x + 1
        x = x.tanh()
    return x


def build():
    torch.manual_seed(0)
    return anneal, (torch.randn(16), (0.9, 0.8, 0.7))


def main():
    function, args = build()
    compiled = torch.compile(function, backend="aot_eager")
    for _ in range(3):
        out = compiled(*args)
    print("sum", round(float(out.sum()), 3))


if __name__ == "__main__":
    main()
