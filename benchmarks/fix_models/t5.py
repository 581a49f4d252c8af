"""T5: two training steps and an evaluation, as a fine-tuning script does."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = T5Config(
    vocab_size=99,
    d_model=32,
    d_ff=37,
    num_layers=2,
    num_heads=2,
    d_kv=16,
    dropout_rate=0.0,
    decoder_start_token_id=0,
)
model = T5ForConditionalGeneration(config).to(device)
compiled = torch.compile(model, backend="eager")
ids, labels = (
    torch.randint(0, 90, (2, 16), device=device),
    torch.randint(0, 90, (2, 12), device=device),
)
for _ in range(2):
    loss = compiled(input_ids=ids, labels=labels).loss
    loss.backward()
    model.zero_grad()
    print(f"loss {loss.item():.4f}")
