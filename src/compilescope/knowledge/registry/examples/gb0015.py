"""A sparse tensor comes into the compiled function."""

import torch


def f(x):
    return x.to_dense() + 1  # breaks here


def inputs():
    return (torch.eye(3).to_sparse(),)
