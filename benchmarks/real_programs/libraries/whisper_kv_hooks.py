"""Greedy transcription of three clips with openai-whisper's model and its key/value hooks."""

import torch
from whisper.model import ModelDimensions, Whisper

START = (1, 2, 3)
STEPS = 8


def build_model():
    dims = ModelDimensions(
        n_mels=8,
        n_audio_ctx=20,
        n_audio_state=32,
        n_audio_head=2,
        n_audio_layer=1,
        n_vocab=64,
        n_text_ctx=32,
        n_text_state=32,
        n_text_head=2,
        n_text_layer=1,
    )
    model = Whisper(dims).eval()
    torch.nn.init.normal_(model.decoder.positional_embedding, std=2.0)
    return model


@torch.no_grad()
def transcribe(model, mel):
    features = model.encoder(mel[None])
    cache, hooks = model.install_kv_cache_hooks()
    tokens = torch.tensor([START])
    logits = model.decoder(tokens, features, kv_cache=cache)
    text = []
    for _ in range(STEPS):
        token = logits[:, -1].argmax(-1, keepdim=True)
        text.append(token.item())
        logits = model.decoder(token, features, kv_cache=cache)
    for hook in hooks:
        hook.remove()
    return text


def main():
    torch.manual_seed(13)
    model = build_model()
    model.decoder = torch.compile(model.decoder)
    for clip in range(3):
        print(clip, transcribe(model, torch.randn(8, 40)))


if __name__ == "__main__":
    main()
