"""`print` may move behind the graph, but what it prints here exists while tracing only."""

import torch


def f(x):
    def late():
        return x

    print(late)  # breaks here
    return x + 1


def run():
    with torch._dynamo.config.patch(reorderable_logging_functions={print}):
        return torch.compile(f, backend="eager")(torch.ones(3))


def plain(x):
    print(x)
    return x + 1


def run_fixed():
    with torch._dynamo.config.patch(reorderable_logging_functions={print}):
        return torch.compile(plain, backend="eager")(torch.ones(3))
