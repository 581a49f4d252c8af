"""The common dtype of a tensor and something that is neither tensor nor number is asked for."""

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

DEFAULT = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT


def f(x):
    dtype, _ = elementwise_dtypes(x, x.sin, type_promotion_kind=DEFAULT)  # breaks here
    return x.to(dtype)


def inputs():
    return (torch.ones(3),)
