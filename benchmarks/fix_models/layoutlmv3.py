"""LayoutLMv3: words, their boxes and the image of the page."""

import torch
from transformers import LayoutLMv3Config, LayoutLMv3ForTokenClassification

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = LayoutLMv3Config(
    vocab_size=99,
    hidden_size=36,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=37,
    max_position_embeddings=64,
    max_2d_position_embeddings=64,
    coordinate_size=6,
    shape_size=6,
    input_size=32,
    patch_size=8,
    num_labels=4,
)
model = LayoutLMv3ForTokenClassification(config).eval().to(device)
compiled = torch.compile(model, backend="eager")
ids = torch.randint(3, 90, (2, 12), device=device)
corner = torch.randint(0, 20, (2, 12, 2), device=device)
boxes = torch.cat([corner, corner + torch.randint(1, 20, (2, 12, 2), device=device)], -1)
with torch.no_grad():
    out = compiled(input_ids=ids, bbox=boxes, pixel_values=torch.randn(2, 3, 32, 32, device=device))
print(f"logits {out.logits.abs().mean().item():.4f}")
