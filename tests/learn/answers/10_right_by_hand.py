def spread(x):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).square().sum(-1) / (x.shape[-1] - 1)
    return (x.amax(-1) - x.amin(-1)) / variance.sqrt()
