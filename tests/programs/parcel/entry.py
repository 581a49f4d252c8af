"""To be run with -m."""

import sys

import torch

print(__name__, __package__, sys.argv[1:], torch.ones(1).item())
