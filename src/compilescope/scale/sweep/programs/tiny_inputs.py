"""Inputs for a model it has never seen: made from forward's signature, corrected by its errors.

Each attempt runs forward once, in eager mode. An error says what was missing (`bbox`), how many
image tokens the text must have, or only that a shape was wrong: then the next shape is tried.
"""

import inspect
import linecache
import re
import time
import traceback
from dataclasses import dataclass, replace

import torch
from tiny_repairs import split_again
from tiny_tensors import Maker

PRIMARY = ("input_ids", "pixel_values", "input_features", "input_values", "flattened_patches")
MISSING = re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)")
COUNTS = re.compile(r"tokens?:? \D*?(\d+)\D+features:? \D*?(\d+)", re.IGNORECASE)
PRODUCT = re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x")
CHANNELS = re.compile(r"to have \d+ channels, but got (\d+) channels")
WIDTHS = (
    PRODUCT,
    re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"),
)
IMAGE = re.compile(r"size \((\d+)\*(\d+)\) doesn't match model \((\d+)\*(\d+)\)")
ASKED = re.compile(r"(?:at least|exactly|same number of|contain) .*?<?(\w+)>? tokens?")
NAME = re.compile(r"\w+")
# Optional everywhere: one of these being None is never the reason.
NEVER = re.compile(
    "(decoder_)?inputs_embeds|(encoder_)?past_key_values?|(decoder_)?position_ids|labels"
    "|(mm_)?encoder_outputs|output_.*|return_.*|use_cache|cache.*|.*head_mask|logits_to_keep"
    "|encoder_hidden_states|encoder_attention_mask|interpolate_.*|mems|self"
)
# For all that the model is made for, for less, for the least, for all that there is.
TRIES = (20, 8, 6, 10)
LARGEST_IMAGE = 1024
"""Pixels a side. Chosen: images grow up to here where a model says that they are too small."""


@dataclass(frozen=True)
class Attempt:
    """What is given, and which of its possible shapes."""

    names: tuple[str, ...]
    shapes: tuple[tuple[str, int], ...] = ()
    tokens: tuple[tuple[str, int], ...] = ()
    """Tokens that stand for an image or a sound in each row of the text."""
    widths: tuple[tuple[int, int], ...] = ()
    """Last dimensions that an error has corrected."""
    repairs: int = 0
    """Of the model itself."""
    image: tuple[int, int] | None = None
    """Another size than the config's."""

    def adding(self, names) -> "Attempt":
        new = [name for name in names if name not in self.names]
        return replace(self, names=(*self.names, *new))

    def shaped(self, name: str, shape: int) -> "Attempt":
        shapes = {**dict(self.shapes), name: shape}
        return replace(self, shapes=tuple(sorted(shapes.items())))

    def holding(self, kind: str, count: int) -> "Attempt":
        tokens = {**dict(self.tokens), kind: count}
        return replace(self, tokens=tuple(sorted(tokens.items())))

    def widened(self, width: int, right: int) -> "Attempt":
        widths = {**dict(self.widths), width: right}
        return replace(self, widths=tuple(sorted(widths.items())))


@dataclass
class Search:
    """The inputs found and how they were made, or the first error."""

    inputs: dict | None = None
    error: BaseException | None = None
    attempt: Attempt | None = None


def find_inputs(model, batch: int, seq: int, until: float) -> Search:
    """Inputs that forward takes, within the time there is."""
    maker = Maker(model, batch, seq)
    search = Search()
    seen: set[Attempt] = set()
    for first, tries in zip(_first_attempts(model, maker), TRIES, strict=False):
        waiting = [first]
        while waiting and tries and time.monotonic() < until and search.inputs is None:
            attempt = waiting.pop(0)
            if attempt in seen:
                continue
            seen.add(attempt)
            tries -= 1
            sure, unsure = _try(model, maker, attempt, search)
            waiting = [*sure, *waiting, *unsure]
    return search


def made_again(model, batch: int, seq: int, attempt: Attempt) -> dict:
    """The inputs of an attempt that succeeded, for another batch size."""
    return Maker(model, batch, seq).make(attempt)


def _try(model, maker: Maker, attempt: Attempt, search: Search):
    """Run forward once; after an error, the attempts that may do better."""
    try:
        inputs = maker.make(attempt)
        with torch.no_grad():
            model(**inputs)
    except Exception as error:
        search.error = search.error or error
        if split_again(error):
            return [replace(attempt, repairs=attempt.repairs + 1)], []
        return _next_attempts(attempt, error, maker)
    search.inputs, search.attempt = inputs, attempt
    return [], []


def _first_attempts(model, maker: Maker) -> list[Attempt]:
    """All that the model is made for; what it can't do without."""
    parameters = maker.parameters
    required = [
        name
        for name, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    main = model.main_input_name
    mains = [main] if isinstance(main, str) else main
    lean = [name for name in mains if name in parameters]
    lean += [name for name in required if name not in lean]
    rich = [*lean, *(name for name in PRIMARY if name in parameters and name not in lean)]
    extra = []
    if "input_ids" in rich and "attention_mask" in parameters:
        extra.append("attention_mask")
    if getattr(model.config, "is_encoder_decoder", False) and "decoder_input_ids" in parameters:
        extra.append("decoder_input_ids")
    everything = [*lean, *(name for name in parameters if not NEVER.fullmatch(name))]
    wanted = [[*rich, *extra], [*lean, *extra], lean, everything]
    return [Attempt(tuple(dict.fromkeys(names))) for names in wanted]


def _next_attempts(attempt: Attempt, error, maker: Maker):
    """What the error asks for, and what else could be."""
    sure: list[Attempt] = []
    counted = COUNTS.search(str(error))
    if counted and maker.token_kinds:
        sure += _counted(attempt, str(error), int(counted[2]), maker)
    missing = [name for name in missing_names(error, maker.parameters) if name not in attempt.names]
    if missing and not MISSING.search(str(error)):
        # One of those an error names is enough; most name it last.
        sure += [attempt.adding([name]) for name in reversed(missing)]
    if missing:
        sure.append(attempt.adding(missing))
    pictured = IMAGE.search(str(error))
    if pictured and attempt.image is None:
        sure.append(replace(attempt, image=_resized(maker.image, pictured)))
    if "too small" in str(error) and max(maker.image) < LARGEST_IMAGE:
        sure.append(replace(attempt, image=(2 * maker.image[0], 2 * maker.image[1])))
    if _in_cache(error) and "use_cache" not in attempt.names:
        sure.append(attempt.adding(["use_cache"]))
    sure += _corrected(attempt, str(error), maker)
    asked = ASKED.search(str(error))
    if asked and asked[1] in maker.special_ids and asked[1] not in dict(attempt.tokens):
        sure.append(attempt.holding(asked[1], 1))
    if sure or _inside(str(error), maker):
        return sure, []
    shapes = dict(attempt.shapes)
    others = [
        attempt.shaped(name, shapes.get(name, 0) + 1)
        for name in _blamed(error, attempt.names)
        if shapes.get(name, 0) + 1 < maker.shapes(name)
    ]
    return sure, others


def _corrected(attempt: Attempt, message: str, maker: Maker) -> list[Attempt]:
    """Where a layer wants another last dimension than an input has."""
    pairs = [(found[1], found[2]) for pattern in WIDTHS if (found := pattern.search(message))]
    return [
        attempt.widened(int(given), int(wanted))
        for given, wanted in pairs
        if int(given) in maker.widths and int(given) not in dict(attempt.widths)
    ]


def _resized(image, told) -> tuple[int, int]:
    """What grew or shrank on its way into the model must begin with another size."""
    high, wide, model_high, model_wide = (int(number) for number in told.groups())
    return image[0] * model_high // high, image[1] * model_wide // wide


def _in_cache(error) -> bool:
    """Some configs lack what the cache of keys and values is made from."""
    return any(
        frame.f_code.co_filename.endswith("cache_utils.py")
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _inside(message: str, maker: Maker) -> bool:
    """Whether two layers don't fit each other: no other input will help."""
    product, channels = PRODUCT.search(message), CHANNELS.search(message)
    if product:
        return int(product[1]) not in maker.sizes
    return bool(channels) and int(channels[1]) not in maker.sizes


def _counted(attempt: Attempt, message: str, features: int, maker: Maker) -> list[Attempt]:
    lowered = message.lower()
    kinds = [kind for kind in maker.token_kinds if kind in lowered] or maker.token_kinds[:1]
    each = max(features // maker.batch, 1)
    hidden = maker.text_width or 1
    counts = [each, *([each // hidden] if each % hidden == 0 and each > hidden else [])]
    return [attempt.holding(kind, count) for kind in kinds for count in counts]


def missing_names(error, parameters) -> list[str]:
    """The parameters of forward that an error is about: by its words, or by what was None there."""
    told = MISSING.search(str(error))
    if told:
        return [name for name in NAME.findall(told[1]) if name != "and"]
    candidates = [name for name in parameters if not NEVER.fullmatch(name)]
    words = set(NAME.findall(str(error)))
    named = [name for name in candidates if name in words]
    if named and isinstance(error, (ValueError, TypeError, KeyError, AssertionError)):
        return named
    if "NoneType" not in str(error) and not isinstance(error, (AttributeError, TypeError)):
        return named
    return _none_in_traceback(error, candidates)


def _none_in_traceback(error, candidates) -> list[str]:
    for frame, words in _frames(error):
        empty = [
            name for name in candidates if name in words and frame.f_locals.get(name, "") is None
        ]
        if empty:
            return empty[:2]
    return []


def _blamed(error, names):
    """The inputs that the failing line reads, or one that led there; else all of them."""
    for _, words in _frames(error):
        read = [name for name in names if name in words]
        if read:
            return read
    return names


def _frames(error):
    """The frames in `transformers`, innermost first, with the words of the lines they stand at."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        path = frame.f_code.co_filename
        if "transformers" in path:
            text = " ".join(linecache.getline(path, line + more) for more in range(4))
            yield frame, set(NAME.findall(text))
