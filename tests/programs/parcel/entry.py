"""To be run with -m. It says which modules of torch's compiler are there: it needs none."""

import sys

assert "torch" not in sys.modules

import torch

print(__name__, __package__, sys.argv[1:], sys.path[0], torch.ones(1).item())
print([name for name in sys.modules if name.startswith("torch._dynamo")])
