"""Grounding-DINO: boxes for what a text names."""

import torch
from transformers import GroundingDinoConfig, GroundingDinoForObjectDetection, SwinConfig

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
backbone = SwinConfig(
    embed_dim=8,
    depths=[1, 1, 1, 1],
    num_heads=[1, 2, 4, 8],
    window_size=4,
    image_size=64,
    out_features=["stage2", "stage3", "stage4"],
)
text = {
    "model_type": "bert",
    "vocab_size": 1100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 37,
}
config = GroundingDinoConfig(
    backbone_config=backbone,
    text_config=text,
    d_model=64,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=37,
    decoder_ffn_dim=37,
    num_queries=5,
    max_text_len=16,
)
model = GroundingDinoForObjectDetection(config).eval().to(device)
compiled = torch.compile(model, backend="eager")
ids = torch.tensor([[101, 20, 30, 1012, 102]], device=device)
with torch.no_grad():
    out = compiled(pixel_values=torch.randn(1, 3, 64, 64, device=device), input_ids=ids)
print(f"boxes {out.pred_boxes.mean().item():.4f}")
