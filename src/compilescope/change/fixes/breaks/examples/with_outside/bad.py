import torch


def sample(x):
    # The caller's numbers stay as they are.
    with torch.random.fork_rng():
        torch.manual_seed(7)
        noise = torch.rand(3)  # always the same
        y = x + noise
    return y


compiled = torch.compile(sample, backend="eager")
compiled(torch.ones(3))
