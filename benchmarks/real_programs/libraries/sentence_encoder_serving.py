"""Serve ragged batches of sentences with a sentence-transformers model built from a config."""

import random
import tempfile

import torch
from sentence_transformers import SentenceTransformer, models
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WORDS = [f"word{number}" for number in range(60)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def save_encoder(folder):
    vocabulary = {word: index for index, word in enumerate(SPECIAL + WORDS)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)


def requests():
    """Batches of three to five sentences of several lengths."""
    generator = random.Random(3)
    for size, longest in ((4, 7), (3, 18), (5, 11), (4, 25), (3, 9)):
        lengths = [longest] + [generator.randint(2, longest) for _ in range(size - 1)]
        yield [" ".join(generator.choices(WORDS, k=length)) for length in lengths]


def main():
    torch.manual_seed(9)
    with tempfile.TemporaryDirectory() as folder:
        save_encoder(folder)
        encoder = models.Transformer(folder)
    pooling = models.Pooling(encoder.get_word_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[encoder, pooling], device="cpu")
    model.compile()
    for sentences in requests():
        vectors = model.encode(sentences, convert_to_tensor=True, normalize_embeddings=True)
        similarity = (vectors @ vectors.T).mean().item()
        print(len(sentences), tuple(vectors.shape), round(similarity, 3))


if __name__ == "__main__":
    main()
