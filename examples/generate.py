"""Text generation with a compiled model of Hugging Face transformers. Run it under compilescope:

compilescope run examples/generate.py [BACKEND]

A tiny Llama with random weights: nothing is downloaded. Its cache grows by one token a step.
"""

import sys

import torch

try:
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError:
    sys.exit("This example needs transformers: pip install transformers")


def main(backend: str = "aot_eager") -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config).eval()
    model.generate = torch.compile(model.generate, backend=backend)
    for length in (5, 9):
        prompt = torch.randint(2, 256, (1, length))
        mask = torch.ones_like(prompt)
        made = model.generate(prompt, attention_mask=mask, max_new_tokens=8, do_sample=False)
        print(f"{length} tokens in, {made.shape[1]} out")


if __name__ == "__main__":
    main(*sys.argv[1:2])
