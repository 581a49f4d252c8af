"""A break in a loop: Dynamo gives the whole function up."""

import torch


def f(x):
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()  # breaks here
    return x


def fixed(x):
    for _ in range(2):
        x = x + 1
    return x


def inputs():
    return (torch.ones(3),)
