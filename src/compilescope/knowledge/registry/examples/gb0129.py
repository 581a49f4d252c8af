"""`sparse_resize_` changes a sparse tensor in place."""

import torch


def f(x):
    y = x * 2
    return y.sparse_resize_((3,), 1, 0)  # breaks here


def inputs():
    return (torch.ones(3),)
