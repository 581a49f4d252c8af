"""A sparse tensor is built inside the compiled function."""

import torch

rows, columns = torch.tensor([0, 1, 2]), torch.tensor([0, 1])


def f(x):
    return torch.sparse_csr_tensor(rows, columns, x * 2, (2, 2))  # breaks here


def inputs():
    return (torch.ones(2),)
