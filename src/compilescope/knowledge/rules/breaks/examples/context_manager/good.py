import threading
import torch

lock = threading.Lock()

@torch.compile(backend="eager")
def inner(x):
    return x + 1

def f(x):
    with lock:
        return inner(x)

print(f(torch.ones(3)))
