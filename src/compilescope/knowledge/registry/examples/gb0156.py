"""`json.dumps` ends in a method that is written in C."""

import json

import torch


def f(x):
    return x + len(json.dumps({"scale": 2}))  # breaks here


LENGTH = len(json.dumps({"scale": 2}))


def fixed(x):
    return x + LENGTH


def inputs():
    return (torch.ones(3),)
