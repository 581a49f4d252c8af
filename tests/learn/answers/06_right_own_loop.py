"""Its own loop over the graph instead of an interpreter."""

import numpy as np
import torch

import compilescope


def softmax(a, dim, half_to_float):
    powers = np.exp(a - a.max(axis=dim, keepdims=True))
    return powers / powers.sum(axis=dim, keepdims=True)


KERNELS = {
    "aten.mm.default": np.matmul,
    "aten.relu.default": lambda a: np.maximum(a, 0),
    "aten.add.Tensor": np.add,
    "aten.t.default": np.transpose,
    "aten._softmax.default": softmax,
}


class Chip(compilescope.AcceleratorAdapter):
    capabilities = compilescope.AcceleratorCapabilities("chip", ["float32"], supported_ops=KERNELS)

    def compile(self, gm, inputs):
        table = dict(KERNELS)

        def run(*tensors):
            values = {}
            inputs = iter(tensors)
            for node in gm.graph.nodes:
                if node.op == "placeholder":
                    values[node] = next(inputs).numpy()
                elif node.op == "output":
                    kept = torch.fx.node.map_arg(node.args[0], values.get)
                    return [torch.from_numpy(each) for each in kept]
                else:
                    given = torch.fx.node.map_arg(node.args, values.get)
                    values[node] = table[str(node.target)](*given)
            return []

        return run
