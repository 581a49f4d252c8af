"""A small Llama from a transformers config."""

import itertools
import sys
import time

import torch
from transformers import LlamaConfig, LlamaModel

SMALL = "--small" in sys.argv
DEVICE = "cuda" if torch.cuda.is_available() and not SMALL else "cpu"
STEPS = 64 if SMALL else 320
WINDOW = STEPS // 16


def now():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def build():
    sizes = (
        {"hidden_size": 64, "num_hidden_layers": 2}
        if SMALL
        else {"hidden_size": 1024, "num_hidden_layers": 12}
    )
    config = LlamaConfig(
        **sizes, vocab_size=8192, intermediate_size=4 * sizes["hidden_size"], num_attention_heads=8
    )
    return LlamaModel(config)


def batch():
    return torch.randint(0, 8192, (1, 16) if SMALL else (1, 64), device=DEVICE)


def main():
    torch.manual_seed(0)
    model = build().to(DEVICE).eval()
    compiled = torch.compile(model)
    batches, times = [batch() for _ in range(4)], []
    with torch.no_grad():
        for step in range(STEPS):
            if step >= STEPS // 2 and step % WINDOW == 0:
                times.append(now())
            out = compiled(batches[step % 4], use_cache=False).last_hidden_state
    times.append(now())
    print("step_ms", *((b - a) * 1000 / WINDOW for a, b in itertools.pairwise(times)))
    print("shape", tuple(out.shape))


if __name__ == "__main__":
    main()
