"""A dict is changed while a read-only view of some dict is in use."""

import types

import torch


def f(x, table, view):
    table["b"] = 2
    return x + view["a"]  # breaks here


def fixed(x, table, view):
    y = x + view["a"]
    table["b"] = 2
    return y


def inputs():
    return torch.ones(3), {"b": 1}, types.MappingProxyType({"a": 1})
