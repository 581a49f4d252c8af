"""What a cache's key is made of, from the lines that torch lists."""

from __future__ import annotations

import msgspec
import pytest

from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.cache_key import KeyPart, cache_access, decode_key, encode_key, split_key

HASH = "esstihe2nyydk4mhzpvox3qkajyu5y5t23hk3fi2me7jn75xi3o"
TENSOR = (
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([s0, 8]), stride=(8, 1), "
    "device=device(type='cuda', index=1), layout=torch.strided, storage_offset=0)"
)


def part(text: str) -> KeyPart:
    split = split_key([f"[{HASH}] {text}"])
    [found] = split.graph.parts + split.settings.parts
    return found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("inductor_config[max_autotune]: False", "False"),
        ("inductor_config[cpp.cxx]: (None, 'g++')", "(None, 'g++')"),
        ("default_dtype: torch.float32", "torch.float32"),
        (f"example_inputs[0]: {TENSOR}", "float32[s0, 8][8, 1]cuda:1"),
        ("cache_key_tag: ", ""),
        ("inductor_config[worker_log_path]: /home/me/logs", ""),
        ("fx_kwargs[get_decomp_fn]: <function select_decomp_table at 0xffff>", ""),
        ("inductor_config[hook]: hook at 0xffff", ""),
        ("gm: GraphModule()\n\ndef forward(self):\n    return ()", ""),
        (f"inductor_config[names]: {'a' * 81}", ""),
    ],
)
def test_short_and_plain_values_are_kept(text: str, value: str) -> None:
    found = part(text)
    assert found.value == value and found.digest == HASH[:12]
    assert text.startswith(f"{found.name}: ")


def test_settings_stand_apart_from_what_is_the_graphs_own() -> None:
    names = [
        "gm",
        "example_inputs[0]",
        "inductor_config[a.b]",
        "torch_version",
        "autograd_config[c]",
    ]
    split = split_key([f"[{HASH}] {name}: 1" for name in names])
    assert [each.name for each in split.graph.parts] == ["gm", "example_inputs[0]", "torch_version"]
    assert [each.item for each in split.settings.parts] == ["a.b", "c"]


@pytest.mark.parametrize(
    "lines", [None, 3, "text", {}, [None, 1, "", "gm: x", "[x] y"], ["[" * 99]]
)
def test_whatever_is_no_list_of_parts_is_none(lines: object) -> None:
    split = split_key(lines)
    assert not split.graph.parts and not split.settings.parts


def test_very_many_parts_are_bounded_and_still_compared() -> None:
    lines = [f"[{HASH}] example_inputs[{n}]: 1" for n in range(5000)]
    one, same = split_key(lines).graph, split_key(list(lines)).graph
    other = split_key([*lines[:-1], f"[{HASH[::-1]}] example_inputs[4999]: 2"]).graph
    assert len(one.parts) == 4097 and one == same and one.parts[:-1] == other.parts[:-1]
    assert one.parts[-1] != other.parts[-1]


def test_there_and_back() -> None:
    parts = split_key([f"[{HASH}] gm: x", f"[{HASH}] inductor_config[a]: 1"]).graph
    assert decode_key(encode_key(parts)) == parts
    with pytest.raises(msgspec.DecodeError):
        decode_key("[" * 10_000)


def test_graphs_of_one_process_share_their_settings() -> None:
    artifacts = MemoryArtifacts()
    setting = f"[{HASH}] inductor_config[a]: 1"
    one, two = (
        cache_access("fx_graph", "miss", {"components": [f"[{h}] gm: x", setting]}, artifacts.put)
        for h in (HASH, HASH[::-1])
    )
    assert one.settings == two.settings and one.parts != two.parts
    assert cache_access("aotautograd", "hit", {"components": [setting]}, None).settings is None
