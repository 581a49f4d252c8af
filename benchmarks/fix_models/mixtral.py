"""Mixtral: training steps of a mixture of experts, with the loss of its router."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = MixtralConfig(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    intermediate_size=64,
    num_local_experts=4,
    output_router_logits=True,
)
model = MixtralForCausalLM(config).train().to(device)
compiled = torch.compile(model, backend="eager")
ids = torch.randint(3, 90, (2, 16), device=device)
for _ in range(3):
    loss = compiled(input_ids=ids, labels=ids).loss
    loss.backward()
    model.zero_grad()
    print(f"loss {loss.item():.4f}")
