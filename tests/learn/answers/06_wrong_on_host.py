"""A softmax that asks torch: it runs on the host."""

import numpy as np
import torch

import compilescope


def softmax(a, dim, half_to_float):
    return torch.softmax(torch.from_numpy(a), dim).numpy()


KERNELS = {
    "aten.mm.default": np.matmul,
    "aten.relu.default": lambda a: np.maximum(a, 0),
    "aten.add.Tensor": np.add,
    "aten.t.default": np.transpose,
    "aten._softmax.default": softmax,
}


class OnChip(torch.fx.Interpreter):
    def call_function(self, target, args, kwargs):
        return KERNELS[str(target)](*args, **kwargs)


class Chip(compilescope.AcceleratorAdapter):
    capabilities = compilescope.AcceleratorCapabilities("chip", ["float32"], supported_ops=KERNELS)

    def compile(self, gm, inputs):
        def run(*tensors):
            results = OnChip(gm).run(*(each.numpy() for each in tensors))
            return [torch.from_numpy(result) for result in results]

        return run
