"""`torch.get_device_module` with an argument that it does not take."""

import torch


def f(x):
    return x + torch.get_device_module("cpu", 1).device_count()  # breaks here


def inputs():
    return (torch.ones(3),)
