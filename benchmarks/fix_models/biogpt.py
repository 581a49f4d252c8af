"""BioGPT: a causal language model with gradient checkpointing off and a padded batch."""

import torch
from transformers import BioGptConfig, BioGptForCausalLM

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
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
model = BioGptForCausalLM(config).train().to(device)
compiled = torch.compile(model, backend="eager")
ids = torch.randint(3, 90, (2, 16), device=device)
mask = torch.ones_like(ids)
mask[1, 12:] = 0
loss = compiled(input_ids=ids, attention_mask=mask, labels=ids).loss
loss.backward()
print(f"loss {loss.item():.4f}")
