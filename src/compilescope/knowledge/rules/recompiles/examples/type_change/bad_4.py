import torch

@torch.compile(backend="eager")
def f(x, options):
    return x * options.scale

def run():
    class Options:
        scale = 2
    print(f(torch.ones(3), Options()))
    return Options

kept = [run(), run()]
