"""A sparse tensor is made inside the compiled function."""

import torch


def f(x):
    return x.to_sparse()  # breaks here


def inputs():
    return (torch.eye(3),)
