"""A test of unittest asks for warnings inside the compiled function."""

import unittest
import warnings

import torch

CONFIG = {"enable_trace_unittest": True}


class Tests(unittest.TestCase):
    def runTest(self):
        pass


def f(x, tests):
    with tests.assertWarns(UserWarning):  # breaks here
        warnings.warn("careful", stacklevel=1)
    return x + 1


def fixed(x, tests):
    return x + 1


ALSO = ("GB0007", "GB0142")


def inputs():
    return torch.ones(3), Tests()
