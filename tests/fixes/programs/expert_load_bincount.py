# ideal: capture-shapes
"""How many tokens go to each expert."""

import torch


@torch.compile(backend="aot_eager")
def load(router, x, experts=4):
    chosen = (x @ router).argmax(-1)
    counts = torch.bincount(chosen.reshape(-1), minlength=experts)
    return counts.float() / counts.sum()


torch.manual_seed(0)
router = torch.randn(3, 4)
for _ in range(2):
    print([round(v, 3) for v in load(router, torch.randn(8, 3)).tolist()])
