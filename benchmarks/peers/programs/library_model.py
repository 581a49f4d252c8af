"""BioGPT from its config, in training mode: the breaks are in `transformers`, not here."""

import torch
from transformers import BioGptConfig, BioGptForCausalLM


def build():
    torch.manual_seed(0)
    config = BioGptConfig(
        vocab_size=99,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=37,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BioGptForCausalLM(config).train(), (torch.randint(3, 90, (2, 16)),)


def main():
    model, args = build()
    compiled = torch.compile(model, backend="aot_eager")
    out = compiled(*args)
    print("sum", round(float(out.logits.sum()), 2))


if __name__ == "__main__":
    main()
