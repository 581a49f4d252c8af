"""A tiny config for any model class: the defaults of its config class, every size divided.

Widths are divided by one number throughout, so what had to be equal, a multiple or a sum stays so.
Values that a config derives from others are left out: it derives them anew.
"""

import copy
import dataclasses
import inspect
import re

from transformers import PretrainedConfig

# Chosen: small, so that a model of any class is built and run quickly on a CPU.
VOCAB = 512
POSITIONS = 2048
EXPERTS = 16
AHEAD = 4
FRAMES = 4
QUERIES = 20
LARGE_IMAGE = 512
MOST_LAYERS = 8
STANDARD = set(vars(PretrainedConfig()))


def _words(pattern: str):
    return re.compile(rf"(?:^|_)(?:{pattern})(?:_|$)")


WIDTH = _words(
    "sizes?|dims?|d|channels?|width|hidden|rank|embd|inner|ffn|filters|units|intermediate"
    "|headdim|features"
)
NOT_WIDTH = _words(
    "vocab|image|img|patch|window|kernel|stride|merge|crop|block|chunk|batch|sample|frames?"
    "|sampling|pool|grid|context|mel|time|length|max|loss|factor|token|input|codebook|tubelet"
    "|cardinality|prediction|dilation|positions?|group"
)
HEAD_DIM = _words("head|rotary|rope|kv|headdim|qk|nope")
LAYER_COUNT = re.compile(r"(^|_)(layers?|depths?|blocks)$")
NOT_LAYER_COUNT = re.compile(
    r"(window|feature_layer|interval|period|freq|every|shared|nextn|dense|start|first|skip|upscale"
    r"|adapter|norm|insert|index|num_encoder_blocks|proj)"
)
HEAD_COUNT = re.compile(r"(^|_)heads?$|^num_.*_heads$")
EXPERT_COUNT = re.compile(r"(^|_)experts$")
INDICES = re.compile(r"(index(es)?|indices|_layers?|layer_id)$")
PLACEHOLDER = re.compile(r"(image|audio|video)_token_(id|index)$")
TOKEN = re.compile(r"token(_id|_ids|_index|_idx)?$|token_index$")


@dataclasses.dataclass(frozen=True)
class Scale:
    """How far to shrink. `divisor` 1 leaves widths, `layers` None leaves the number of layers."""

    divisor: int
    layers: int | None = 2
    images: bool = True
    """Large images too."""
    fewer_heads: bool = False
    """Divide the number of heads, not their dimension."""


def scales(config) -> list[Scale]:
    """From tiny to the defaults: a later one is tried where an earlier one fails."""
    widths = [width for part in parts(config) for width in hidden_of(part)]
    first = next((n for n in (32, 16, 8, 4, 2) if _divides(n, widths)), 2)
    ladder = [Scale(first), Scale(first, fewer_heads=True), Scale(first, images=False)]
    ladder += [Scale(first, layers=None, images=False)]
    ladder += [Scale(n, images=False) for n in (8, 4, 2) if n < first]
    ladder += [Scale(n, fewer_heads=True) for n in (8, 4) if n < first]
    # Where one part is narrow and another wide, the first may be too large.
    ladder += [Scale(n) for n in (16, 32) if n > first]
    return [*ladder, Scale(1, images=False), Scale(1, layers=None, images=False)]


def _divides(divisor: int, widths: list[int]) -> bool:
    """Into widths of at least 32, in multiples of 4: some kernels want rows of 16 bytes."""
    return all(width // divisor >= 32 and width % (4 * divisor) == 0 for width in widths)


def parts(config):
    """The config and all that it contains."""
    yield config
    for value in list(vars(config).values()):
        if isinstance(value, PretrainedConfig):
            yield from parts(value)


def shrunk(config, scale: Scale):
    """A config like this one, small."""
    text = getattr(config, "text_config", None)
    return _Shrinking(scale, getattr(text, "hidden_size", None)).config(config)


def hidden_of(config) -> list[int]:
    return _numbers(config, "hidden_size", "d_model", "embed_dim", "hidden_dim", "n_embd", "dim")


def heads_of(config) -> list[int]:
    return [
        value
        for name, value in vars(config).items()
        if type(value) is int and value > 0 and HEAD_COUNT.search(name)
    ]


def value_of(config, name: str):
    """A field by any of its names; None where it has no single value."""
    try:
        return getattr(config, name, None)
    except Exception:
        return None


def _numbers(config, *names: str) -> list[int]:
    found = [value_of(config, name) for name in names]
    return [value for value in found if isinstance(value, int) and value > 8]


def declared(kind) -> dict:
    """The fields of a config class and their defaults, as its signatures have them."""
    found = {}
    for owner in reversed(kind.__mro__):
        init = vars(owner).get("__init__")
        if init is None or owner in (object, PretrainedConfig):
            continue
        for name, parameter in inspect.signature(init).parameters.items():
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                found[name] = parameter.default
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            found[field.name] = field.default
    found.pop("self", None)
    return found


def _leads_to_text(name: str, config) -> bool:
    """The width of what a part gives to the text model. Some defaults don't fit each other."""
    own = getattr(config, "embed_dim", None)
    return name == "out_hidden_size" or (name == "hidden_size" and own not in (None, _own(config)))


def _own(config):
    return vars(config).get("hidden_size")


class _Shrinking:
    def __init__(self, scale: Scale, text_width: int | None) -> None:
        self.scale = scale
        self.text_width = text_width
        self.tokens: dict[int, int] = {}

    def config(self, config):
        kind = type(config)
        changes = self._changes(config)
        try:
            return kind(**changes)
        except Exception:
            # Some want their parts as dicts.
            plain = {
                name: value.to_dict() if isinstance(value, PretrainedConfig) else value
                for name, value in changes.items()
            }
            return kind(**plain)

    def _changes(self, config) -> dict:
        fields = declared(type(config))
        # Some fields are declared by one name and kept by another.
        aliases = {
            real: name for name, real in type(config).attribute_map.items() if name in fields
        }
        fields |= {real: fields[name] for real, name in aliases.items() if real not in fields}
        usual = _default(type(config))
        shape = _Shape(config, self.scale, inner=bool(self.text_width))
        changes = {}
        for name, value in vars(config).items():
            if self.text_width and _leads_to_text(name, config):
                changes[name] = shape.width(self.text_width)
                continue
            if isinstance(value, PretrainedConfig):
                changes[name] = self.config(value)
                continue
            unlike = usual is not None and value_of(usual, name) != value
            derived = value is not None and fields.get(name) is None and not unlike
            if name.startswith("_") or (name not in fields and name not in STANDARD and not unlike):
                continue
            small = self._small(name, value, config, shape)
            if small is not value and (not derived or isinstance(value, dict)):
                changes[aliases.get(name, name)] = small
            elif unlike and not name.startswith(("transformers_version", "out_feature")):
                changes[name] = value
        indices = getattr(config, "_out_indices", None)
        if indices and usual is not None and getattr(usual, "_out_indices", None) != indices:
            changes["out_indices"] = [shape.index(i) for i in indices]
        return changes

    def _small(self, name: str, value, config, shape):
        if value is None:
            return self._absent(name, config, shape)
        if isinstance(value, (bool, str, float)):
            return value
        if isinstance(value, dict):
            return shape.rotary(value)
        if isinstance(value, (list, tuple)):
            return self._small_list(name, value, config, shape)
        if not isinstance(value, int):
            return value
        return self._small_number(name, value, shape)

    def _small_list(self, name, value, config, shape):
        if not value:
            return value
        if len(value) == shape.old_layers and ("layer" in name or isinstance(value[0], str)):
            return value[: shape.new_layers]
        if name.endswith(("image_size", "img_size")):
            return type(value)(item * shape.image(max(value)) // max(value) for item in value)
        if not all(isinstance(item, int) for item in value):
            return value
        if TOKEN.search(name):
            return type(value)(self._token(item) for item in value)
        if INDICES.search(name) and list(value) == sorted(set(value)):
            return type(value)(dict.fromkeys(shape.index(item) for item in value))
        if LAYER_COUNT.search(name):
            return type(value)(min(item, self.scale.layers or item) for item in value)
        return type(value)(self._small_number(name, item, shape) for item in value)

    def _small_number(self, name: str, value: int, shape):
        words = set(name.split("_"))
        if TOKEN.search(name):
            return self._token(value)
        if "vocab" in words:
            return min(value, VOCAB)
        if "position" in name and "max" in words:
            return min(value, POSITIONS)
        if name in ("image_size", "img_size"):
            return shape.image(value)
        if EXPERT_COUNT.search(name) and "shared" not in words:
            return min(value, EXPERTS) if self.scale.divisor > 1 else value
        if HEAD_COUNT.search(name):
            return shape.heads(value)
        if name == "num_frames" and self.scale.images:
            return min(value, FRAMES)
        if name == "num_queries":
            return min(value, QUERIES)
        if LAYER_COUNT.search(name) and not NOT_LAYER_COUNT.search(name):
            return shape.layers(value)
        if INDICES.search(name) and not name.startswith("num_"):
            return shape.index(value)
        if WIDTH.search(name) and not NOT_WIDTH.search(name):
            return shape.head_dim(value) if HEAD_DIM.search(name) else shape.width(value)
        return value

    def _absent(self, name: str, config, shape):
        """A batch of texts needs a padding token; an image in a text needs a token too."""
        if name == "prediction_length":
            return AHEAD
        if name == "pad_token_id" and hasattr(config, "vocab_size"):
            return 0
        if name == "num_key_value_heads" and isinstance(
            getattr(config, "num_attention_heads", None), int
        ):
            return shape.heads(config.num_attention_heads)
        if PLACEHOLDER.match(name):
            return self._token(VOCAB + len(self.tokens))
        return None

    def _token(self, value: int) -> int:
        """Below the vocabulary's size; equal ids stay equal, others stay apart."""
        if value < VOCAB:
            return value
        return self.tokens.setdefault(value, VOCAB - 1 - len(self.tokens))


class _Shape:
    """What the sizes of one config have to do with each other."""

    def __init__(self, config, scale: Scale, *, inner: bool) -> None:
        self.scale = scale
        self.inner = inner
        heads = heads_of(config)
        dims = _numbers(config, "head_dim")
        dims += [width // n for width in hidden_of(config) for n in heads if width % n == 0]
        self.head_divisor = 1 if scale.fewer_heads else scale.divisor
        # Rotary embeddings want a multiple of 4: what can't come off a head comes off their number.
        while self.head_divisor > 1 and any(dim % (4 * self.head_divisor) for dim in dims):
            self.head_divisor //= 2
        self.per_head = scale.divisor // self.head_divisor
        self.one_head = any(n % self.per_head for n in heads if n > self.per_head)
        self.old_layers = self._old_layers(config)
        self.new_layers = self._new_layers(config)
        self.stages = {
            len(value)
            for value in vars(config).values()
            if isinstance(value, (list, tuple)) and value and isinstance(value[0], (int, list))
        }
        self.patch = _largest(getattr(config, "patch_size", None)) or 32

    def _old_layers(self, config) -> int:
        counts = [
            value
            for name, value in vars(config).items()
            if isinstance(value, int) and LAYER_COUNT.search(name)
            if not NOT_LAYER_COUNT.search(name)
        ]
        return max(counts, default=0)

    def _new_layers(self, config) -> int:
        """Enough for every kind of layer, and for every layer that is asked for by its index."""
        if self.scale.layers is None:
            return self.old_layers
        needed = self.scale.layers
        for name, value in vars(config).items():
            if not isinstance(value, (list, tuple)) or not value:
                continue
            if all(isinstance(item, str) for item in value) and len(value) == self.old_layers:
                needed = max(needed, *(value.index(item) + 1 for item in set(value)))
            elif INDICES.search(name) and all(isinstance(item, int) for item in value):
                needed = max(needed, len(value))
        return min(needed, MOST_LAYERS, self.old_layers or needed)

    def layers(self, value: int) -> int:
        if value in self.stages and value != self.old_layers:
            return value
        if value == self.old_layers:
            return self.new_layers
        return min(value, self.scale.layers or value)

    def index(self, value: int) -> int:
        if not self.old_layers or value < 0 or value > self.old_layers:
            return value
        return min(value * self.new_layers // self.old_layers, self.new_layers)

    def width(self, value: int) -> int:
        if value < 16:
            return value
        return max(value // self.scale.divisor, 1)

    def head_dim(self, value: int) -> int:
        return max(value // self.head_divisor, 1) if value >= 16 else value

    def heads(self, value: int) -> int:
        return 1 if self.one_head else max(value // self.per_head, 1)

    def image(self, value: int) -> int:
        if self.inner and value % self.patch == 0:
            # Patches are merged in groups on their way to a text model.
            value = -(-value // (4 * self.patch)) * 4 * self.patch
        while self.scale.images and value > LARGE_IMAGE and value % (4 * self.patch) == 0:
            value //= 2
        return value

    def rotary(self, value: dict) -> dict:
        """Sections of the head dimension, wherever they stand."""
        small = copy.deepcopy(value)
        changed = False
        for name, item in value.items():
            if str(name).endswith("section") and isinstance(item, (list, tuple)):
                small[name] = shares(item, sum(item) // self.head_divisor)
                changed = True
            elif isinstance(item, dict):
                inner = self.rotary(item)
                changed = changed or inner is not item
                small[name] = inner
        return small if changed else value


def shares(sizes, total: int) -> list[int]:
    """Sizes with this sum, in about the same proportion."""
    small = [size * total // sum(sizes) for size in sizes]
    for place in range(total - sum(small)):
        small[place % len(small)] += 1
    return small


def _largest(value) -> int | None:
    if isinstance(value, (list, tuple)):
        return max((item for item in value if isinstance(item, int)), default=None)
    return value if isinstance(value, int) else None


def _default(kind):
    try:
        return kind()
    except Exception:
        return None
