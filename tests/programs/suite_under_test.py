"""A pytest file; its name keeps it out of this project's own test run."""

import torch


def helper(x):
    torch._dynamo.graph_break()
    return x + 1


def test_alone():
    def alone(x):
        torch._dynamo.graph_break()
        return x * 2

    torch.compile(alone, backend="eager")(torch.ones(2))


def test_shared_first():
    torch.compile(helper, backend="eager")(torch.ones(2))


def test_shared_again():
    torch._dynamo.reset()
    torch.compile(helper, backend="eager")(torch.ones(2))


def test_fails():
    assert torch.ones(1).item() == 2
