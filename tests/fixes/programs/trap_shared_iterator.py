# ideal: none
# trap: the stream goes on after the call: a list of it would use up what the next call reads
import torch


@torch.compile(backend="eager")
def take(x, stream):
    for n in stream:
        x = x + n
        if n >= 2:
            break
    return x


stream = (n for n in range(6))
print(take(torch.zeros(2), stream).tolist())
print(list(stream))
