"""A method of a logger writes a message, which a graph cannot do."""

import logging

import torch

log = logging.getLogger("model")


def f(x):
    y = x * 2
    log.info("half way")  # breaks here
    return y + 1


def fixed(x):
    if not torch.compiler.is_compiling():
        log.info("half way")
    return x * 2 + 1


def inputs():
    return (torch.ones(3),)
