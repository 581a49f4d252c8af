"""To be run as `-m parcel`."""

import torch

from parcel.maths import triple

print("main of the parcel", __name__, __package__, triple(torch.ones(2)).tolist())
