import threading
import torch

lock = threading.Lock()

def f(x):
    with lock:
        return x + 1

print(torch.compile(f, backend="eager")(torch.ones(3)))
