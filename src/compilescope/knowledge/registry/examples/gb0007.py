"""`time.sleep` is a function that Dynamo is told not to trace."""

import time

import torch


def f(x):
    y = x * 2
    time.sleep(0)  # breaks here
    return y + 1


def fixed(x):
    return x * 2 + 1


def inputs():
    return (torch.ones(3),)
