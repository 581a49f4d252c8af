"""A detection loss: DETR matches boxes with targets."""

import torch
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
backbone = ResNetConfig(
    embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"]
)
config = DetrConfig(
    backbone_config=backbone,
    use_timm_backbone=False,
    use_pretrained_backbone=False,
    backbone=None,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=37,
    decoder_ffn_dim=37,
    num_queries=6,
    num_labels=4,
    dropout=0.0,
)
model = DetrForObjectDetection(config).train().to(device)
compiled = torch.compile(model, backend="eager")
targets = [
    {
        "class_labels": torch.tensor([1, 2], device=device),
        "boxes": torch.rand(2, 4, device=device) / 2 + 0.2,
    },
    {
        "class_labels": torch.tensor([3], device=device),
        "boxes": torch.rand(1, 4, device=device) / 2 + 0.2,
    },
]
out = compiled(pixel_values=torch.randn(2, 3, 64, 64, device=device), labels=targets)
out.loss.backward()
print(f"loss {out.loss.item():.4f}")
