import torch

import compilescope


def on_disk(fn, x):
    torch.compiler.reset()
    with compilescope.capture() as seen:
        torch.compile(fn)(x)
    return any(count.hits for count in seen.digest.caches.values())
