"""`torch.get_device_module` with a device that does not exist."""

import torch


def f(x):
    return x + torch.get_device_module("abacus").device_count()  # breaks here


def inputs():
    return (torch.ones(3),)
