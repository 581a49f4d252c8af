"""The backend fails; the program suppresses the error and silences the warning about it."""

import logging

import torch

torch._dynamo.config.suppress_errors = True
logging.getLogger("torch._dynamo").setLevel(logging.ERROR)


def short_of_erf(graph, inputs):
    if any(node.target is torch.erf for node in graph.graph.nodes):
        raise NotImplementedError("no kernel for erf")
    return graph.forward


def activate(x):
    y = x * 0.5
    return y * torch.erf(x)


def build():
    torch.manual_seed(0)
    return activate, (torch.randn(16),)


def main():
    function, args = build()
    compiled = torch.compile(function, backend=short_of_erf)
    out = compiled(*args)
    print("sum", round(float(out.sum()), 3))


if __name__ == "__main__":
    main()
