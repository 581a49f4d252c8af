"""Right numbers, but nothing is compiled."""


def score(x):
    return x[: x.shape[0] // 2 * 2].softmax(0).sum(1)


def make(backend):
    return score
