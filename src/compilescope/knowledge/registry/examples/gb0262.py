"""`contextlib.closing` and its like are not traced."""

import contextlib

import torch

ALSO = ("GB0142",)


class Reader:
    def close(self):
        pass


def f(x):
    with contextlib.closing(Reader()):  # breaks here
        return x + 1


def fixed(x):
    reader = Reader()
    try:
        return x + 1
    finally:
        reader.close()


def inputs():
    return (torch.ones(3),)
