"""Tensors for the parameters of forward, by their names and the sizes in the config.

The names are those that `transformers` shares between its models; any other is guessed from how it
ends. A name may have several shapes, the likeliest first.
"""

import inspect
import math

import torch
from tiny_config import parts, value_of

SIGNAL = 16000
FRAMES = 128
MEDIA = ("image", "audio", "video")


class Maker:
    """Makes the tensors for one model."""

    def __init__(self, model, batch: int, seq: int) -> None:
        self.config = model.config
        self.batch = batch
        self.seq = seq
        self.parameters = {
            name: parameter
            for name, parameter in inspect.signature(model.forward).parameters.items()
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        }
        self.channels = self._look("num_channels", "in_channels", "in_chans", "input_channels") or 3
        self.usual_image = self.image = self._pair(
            self._look("image_size", "img_size", "max_img_size", lists=True)
        ) or (224, 224)
        self.patch = self._pair(self._look("patch_size", "patch_sizes", lists=True)) or (16, 16)
        self.merge = self._look("spatial_merge_size", "merge_size") or 2
        self.frames = self._look("num_frames", "num_image_with_embedding") or 0
        self.temporal = self._look("temporal_patch_size") or 1
        self.hidden = self._look("hidden_size", "d_model", "embed_dim", "n_embd") or 32
        self.mel = (
            self._look("num_mel_bins", "feature_size", "input_feat_per_channel", "n_mels")
            or self._look("feature_projection_input_dim", "mel_bins", "input_dim", "num_mels")
            or 80
        )
        text = getattr(self.config, "get_text_config", lambda: self.config)()
        self.text_width = getattr(text, "hidden_size", None)
        self.vocab = self._look("vocab_size") or 64
        self.special_ids = self._token_ids()
        self.special = set(self.special_ids.values())
        self.end = self._look("eos_token_id")
        self.token_kinds = [kind for kind in MEDIA if kind in self.special_ids]

    def make(self, attempt) -> dict:
        """The inputs of this attempt."""
        torch.manual_seed(0)
        shapes = dict(attempt.shapes)
        self.image = attempt.image or self.usual_image
        self.length = self.seq + sum(count for _, count in attempt.tokens)
        self.given = set(attempt.names)
        made = {}
        for name in attempt.names:
            made[name] = self._widened(self._all(name)[shapes.get(name, 0)](), attempt.widths)
        floats = [value for value in made.values() if _is_float(value)]
        self.widths = {value.shape[-1] for value in floats}
        self.sizes = {size for value in floats for size in value.shape}
        self._place(made, attempt.tokens)
        return made

    def shapes(self, name: str) -> int:
        """How many there are to try."""
        return len(self._all(name))

    @staticmethod
    def _widened(value, widths):
        right = dict(widths).get(value.shape[-1]) if _is_float(value) else None
        return torch.randn(*value.shape[:-1], right) if right else value

    # The sizes in the config

    def _look(self, *names: str, lists: bool = False):
        """The first of these in the config or in a part of it."""
        for part in parts(self.config):
            for name in names:
                value = value_of(part, name)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
                if lists and isinstance(value, (list, tuple)) and value:
                    return value
        return None

    @staticmethod
    def _pair(value):
        if isinstance(value, int):
            return (value, value)
        if isinstance(value, (list, tuple)) and isinstance(value[0], int):
            return (value[0], value[1] if len(value) == 2 else value[0])
        return None

    def _token_ids(self) -> dict[str, int]:
        """What ids stand for: image, pad, question ..."""
        found: dict[str, int] = {}
        for part in parts(self.config):
            for name, value in vars(part).items():
                if "token" in name and isinstance(value, int) and not isinstance(value, bool):
                    found.setdefault(name.partition("_token")[0], value)
        return found

    # The tensors

    def _all(self, name: str) -> list:
        known = getattr(self, f"_{name}", None)
        return known() if known else self._guessed(name)

    def _guessed(self, name: str) -> list:
        batch, length = self.batch, self.length_now
        if name.endswith("mask"):
            return [
                lambda: torch.ones(batch, length, dtype=torch.long),
                lambda: torch.ones(batch, *self.image, dtype=torch.long),
            ]
        if name.endswith("masks"):
            return [
                lambda: torch.ones(batch, self.channels, *self.image),
                lambda: torch.ones(batch, 1, *self.image),
            ]
        if name.endswith(("ids", "idx", "index", "labels", "codes", "tokens", "position")):
            return [lambda: torch.zeros(batch, length, dtype=torch.long)]
        if name.endswith("_id"):
            return [
                lambda: torch.zeros(batch, 1, dtype=torch.long),
                lambda: torch.zeros(batch, dtype=torch.long),
            ]
        if name.endswith("pixel_values"):
            return self._pixel_values()
        if "grid" in name:
            return self._grid_thw()
        if name in ("height", "width"):
            side = self.image[name == "width"] // self.patch[0]
            return [lambda: side]
        wide = self.hidden
        return [
            lambda: torch.randn(batch, length, wide),
            lambda: torch.randn(batch, wide),
            lambda: torch.randn(batch, wide, length),
            lambda: torch.zeros(batch, length, dtype=torch.long),
        ]

    @property
    def length_now(self) -> int:
        return getattr(self, "length", self.seq)

    def _ids(self, *shape: int):
        ids = torch.randint(0, min(self.vocab, 400), shape)
        allowed = next(i for i in range(self.vocab) if i not in self.special)
        for special in self.special:
            ids[ids == special] = allowed
        if self.end is not None:
            ids[..., -1] = self.end
        return ids

    def _input_ids(self) -> list:
        batch, length = self.batch, self.length_now
        books = self._look("num_codebooks", "audio_channels", "num_quantizers") or 2
        return [
            lambda: self._ids(batch, length),
            lambda: self._ids(batch, 2, length),
            lambda: self._ids(batch, length, books),
            lambda: self._ids(batch, length, books + 1),
            lambda: self._ids(batch, books, length),
            lambda: self._ids(batch, length + 512 - length % 512),
        ]

    def _decoder_input_ids(self) -> list:
        books = self._look("num_codebooks") or 1
        return [
            lambda: self._ids(self.batch, self.seq),
            lambda: self._ids(self.batch * books, self.seq),
        ]

    def _token_type_ids(self) -> list:
        return [lambda: torch.zeros(self.batch, self.length_now, dtype=torch.long)]

    def _use_cache(self) -> list:
        return [lambda: False]

    def _attention_mask(self) -> list:
        if "input_ids" in self.given_now:
            return [
                lambda: torch.ones(self.batch, self.length_now, dtype=torch.long),
                lambda: torch.ones(self.batch, 2, self.length_now, dtype=torch.long),
            ]
        # Eager mode skips a mask without padding, whatever its length; a compiled model doesn't.
        lengths = (self.length_now, FRAMES, SIGNAL)
        return [lambda size=size: self._padded(size) for size in lengths]

    def _padded(self, size: int):
        mask = torch.ones(self.batch, size, dtype=torch.long)
        mask[:, -1] = 0
        return mask

    @property
    def given_now(self) -> set:
        return getattr(self, "given", {"input_ids"})

    def _bbox(self) -> list:
        return [lambda: torch.zeros(self.batch, self.length_now, 4, dtype=torch.long)]

    def _pixel_values(self) -> list:
        batch, channels, (high, wide) = self.batch, self.channels, self.image
        frames = self.frames or 2
        plain = [
            lambda: torch.randn(batch, channels, high, wide),
            lambda: torch.randn(batch, frames, channels, high, wide),
            lambda: torch.randn(batch, 1, channels, high, wide),
            lambda: torch.randn(batch, channels, 640, 640),
            lambda: torch.randn(batch, self.temporal, *self.patch, channels),
        ]
        if self.frames:
            plain[0], plain[1] = plain[1], plain[0]
        flat = self.temporal * channels * math.prod(self.patch)
        rows, columns = self._grid_sides()
        count = rows * columns
        patches = [
            lambda: torch.randn(batch * count, flat),
            lambda: torch.randn(batch * count, channels, *self.patch),
            lambda: torch.randn(1, batch * count, flat),
            lambda: torch.randn(batch, count, flat),
        ]
        if any("grid" in name for name in self.parameters):
            return patches + plain
        if "spatial_shapes" in self.parameters or "patch_attention_mask" in self.parameters:
            return [patches[3], *plain]
        return [*plain, patches[3], patches[0]]

    _pixel_values_videos = _pixel_values

    def _hidden_states(self) -> list:
        if any("grid" in name for name in self.parameters):
            return self._pixel_values()
        return [
            lambda: torch.randn(self.batch, self.length_now, self.hidden),
            lambda: torch.randn(self.batch, self.hidden, self.length_now),
            *self._pixel_values()[:1],
        ]

    def _grid_sides(self) -> tuple[int, int]:
        """Patches along each side: few, in whole groups of those that are merged."""
        return 2 * self.merge, 2 * self.merge

    def _grid_thw(self) -> list:
        rows, columns = self._grid_sides()
        return [
            lambda: torch.tensor([[1, rows, columns]] * self.batch),
            lambda: torch.tensor([[rows, columns]] * self.batch),
        ]

    _image_grid_thw = _grid_thw
    _video_grid_thw = _grid_thw

    def _image_grid_hw(self) -> list:
        return self._grid_thw()[1:]

    _spatial_shapes = _image_grid_hw

    def _pixel_mask(self) -> list:
        return [lambda: torch.ones(self.batch, *self.image, dtype=torch.long)]

    def _pixel_attention_mask(self) -> list:
        rows, columns = self._grid_sides()
        return [
            lambda: torch.ones(self.batch, rows * columns, dtype=torch.long),
            lambda: torch.ones(self.batch, *self.image, dtype=torch.long),
            lambda: torch.ones(self.batch, 1, *self.image, dtype=torch.long),
        ]

    def _image_sizes(self) -> list:
        return [lambda: torch.tensor([self.image] * self.batch)]

    def _target_sizes(self) -> list:
        rows, columns = (size // side for size, side in zip(self.image, self.patch, strict=True))
        return [
            lambda: torch.tensor([[rows, columns]] * self.batch),
            *self._image_grid_hw(),
            *self._image_sizes(),
        ]

    def _mm_token_type_ids(self) -> list:
        return [lambda: torch.zeros(self.batch, self.length_now, dtype=torch.long)]

    def _bool_masked_pos(self) -> list:
        """Half of the patches; of a video, in each of its tubes."""
        rows, columns = (size // side for size, side in zip(self.image, self.patch, strict=True))
        tubes = max(self.frames // (self._look("tubelet_size") or 1), 1)
        half = torch.arange(rows * columns * tubes) % 2 == 0
        return [lambda: half.repeat(self.batch, 1)]

    def _flattened_patches(self) -> list:
        flat = self.channels * math.prod(self.patch)
        return [lambda: torch.rand(self.batch, 16, flat + 2).mul(4).floor()]

    def _input_values(self) -> list:
        batch, mel = self.batch, self.mel
        signals = [
            lambda: torch.randn(batch, SIGNAL),
            lambda: torch.randn(batch, 1, SIGNAL),
        ]
        frames = self._look("max_length") or FRAMES
        spectra = [
            lambda: torch.randn(batch, frames, mel),
            lambda: torch.randn(batch, mel, frames),
        ]
        return spectra + signals if self._look("num_mel_bins", "max_length") else signals + spectra

    def _input_features(self) -> list:
        batch, mel = self.batch, self.mel
        positions = self._look("max_source_positions")
        fixed = 2 * positions if positions and positions <= 3000 else 3000
        whole = lambda: torch.randn(batch, mel, fixed)  # noqa: E731
        shapes = [
            lambda: torch.randn(batch, FRAMES, mel),
            lambda: torch.randn(batch, mel, FRAMES),
            lambda: torch.randn(batch, 1, mel, FRAMES),
            lambda: torch.randn(batch, 1, 1024, mel),
        ]
        return [whole, *shapes] if positions else [*shapes, whole]

    def _input_features_mask(self) -> list:
        return [lambda: torch.ones(self.batch, FRAMES, dtype=torch.long)]

    _feature_attention_mask = _input_features_mask

    def _past_values(self) -> list:
        return self._series(self._past_length())

    def _future_values(self) -> list:
        return self._series(self._look("prediction_length") or 1)

    def _series(self, length: int) -> list:
        channels = self._look("num_input_channels", "input_size") or 1
        one = lambda: torch.randn(self.batch, length)  # noqa: E731
        several = lambda: torch.randn(self.batch, length, channels)  # noqa: E731
        return [one, several] if self._look("input_size") == 1 else [several, one]

    def _past_length(self) -> int:
        lags = getattr(self.config, "lags_sequence", None) or [0]
        return (self._look("context_length", "history_len") or 64) + max(lags)

    def _past_observed_mask(self) -> list:
        return [lambda make=make: torch.ones_like(make()) for make in self._past_values()]

    def _past_time_features(self) -> list:
        return self._times(self._past_length())

    def _future_time_features(self) -> list:
        return self._times(self._look("prediction_length") or 1)

    def _times(self, length: int) -> list:
        features = self._look("num_time_features")
        return [lambda: torch.randn(self.batch, length, 1 if features is None else features)]

    # Images and sounds in the text

    def _place(self, made: dict, tokens) -> None:
        ids = made.get("input_ids")
        if ids is None or ids.dim() != 2:
            return
        start = 1
        for kind, count in tokens:
            ids[:, start : start + count] = self.special_ids[kind]
            if "mm_token_type_ids" in made:
                made["mm_token_type_ids"][:, start : start + count] = 1 + (kind == "video")
            start += count


def _is_float(value) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() > 1
