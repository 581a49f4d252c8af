import torch


def _sample_result(x):
    noise = torch.rand(3)  # always the same
    y = x + noise
    return y


# left to Python, but not what it calls; no public decorator does this
@torch._dynamo.decorators.skip
def sample(x):
    # The caller's numbers stay as they are.
    with torch.random.fork_rng():
        torch.manual_seed(7)
        y = _sample_result(x)
    return y


compiled = torch.compile(sample, backend="eager")
compiled(torch.ones(3))
