"""Copies share memory among themselves as the originals do, whatever kind of tensor they are."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from compilescope.measure.tensors.copies import CopiedArguments, copied_tensors, copied_values  # noqa: E402

pytestmark = pytest.mark.torch
Tensor = torch.Tensor


def as_list(*tensors: Tensor) -> list[Tensor]:
    return list(copied_tensors(tensors).values())


@pytest.mark.parametrize("copied", [as_list, lambda *tensors: copied_values(tensors)])
def test_views_of_one_storage(copied: object) -> None:
    base = torch.arange(12.0)
    views = (base[2:8], base.view(3, 4).t(), base)
    copies = copied(*views)  # type: ignore[operator]
    for one, other in zip(views, copies, strict=True):
        assert torch.equal(one, other) and one.stride() == other.stride()
    copies[2][3] = -1.0
    assert copies[0][1] == -1 == copies[1][3, 0] and base[3] == 3


def test_arrays_that_begin_at_one_address() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(6.0)
    short, long = torch.from_numpy(array[:3]), torch.from_numpy(array)
    for copies in (as_list(short, long), copied_values([short, long])):
        assert torch.equal(copies[0], short) and torch.equal(copies[1], long)
        copies[0][1] = 7.0
        assert copies[1][1] == 7 and array[1] == 1
    wide = copied_tensors([short.float(), long.float()], lambda dtype: torch.float64)
    assert [tensor.tolist() for tensor in wide.values()] == [short.tolist(), long.tolist()]


def test_the_memory_around_a_view() -> None:
    view = torch.arange(10.0)[2:5]
    [whole], [alone] = as_list(view), copied_values([view])
    assert whole.as_strided((2,), (1,), 8).tolist() == [8, 9]
    assert alone.untyped_storage().nbytes() == 3 * 4


def test_conjugated_views_keep_their_values() -> None:
    base = torch.tensor([1 + 2j, 3 - 1j])
    first, second = copied_values([base, base.conj()])
    assert torch.equal(first, base) and torch.equal(second.resolve_conj(), base.conj())


def test_nested_tensors_are_arguments_too() -> None:
    parts = [torch.ones(2), torch.zeros(3)]
    nested = torch.nested.nested_tensor(parts)
    (copied,), _ = CopiedArguments((nested,), {}, []).copied()
    assert copied is not nested
    assert all(torch.equal(a, b) for a, b in zip(copied.unbind(), parts, strict=True))


def test_values_keep_what_they_are() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    leaf = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        inferred = torch.ones(2)
        copies = copied_values([weight, leaf * 2, leaf, leaf, inferred, 5, None])
    assert isinstance(copies[0], torch.nn.Parameter) and copies[0].requires_grad
    assert copies[2] is copies[3] and copies[2].requires_grad and copies[2].is_leaf
    assert not copies[4].is_inference() and copies[5:] == [5, None]
    expanded = torch.ones(1).expand(4)
    [copy] = copied_values([expanded])
    copy.add_(1)
    assert copy.tolist() == [2] * 4 and expanded.tolist() == [1] * 4


def test_gradients_that_lie_in_arguments_are_copied_with_them() -> None:
    """Clipping reads and writes them; a copy without them would be another argument."""
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.arange(3.0)
    arguments = CopiedArguments(([weight],), {}, [])
    (copies,), _ = arguments.copied()
    copies[0].grad.mul_(2.0)
    assert copies[0].grad.tolist() == [0, 2, 4] and weight.grad.tolist() == [0, 1, 2]
    (wide,), _ = arguments.copied(lambda dtype: torch.float64)
    assert wide[0].grad.dtype is torch.float64
    (forgotten,), _ = arguments.copied(forget=True)
    assert forgotten[0].grad is None
    (others,), _ = arguments.remade(lambda tensor: tensor.detach() + 1)
    assert others[0].grad.tolist() == [1, 2, 3] and weight.grad.tolist() == [0, 1, 2]


def test_an_argument_whose_gradient_is_the_other_argument() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.zeros(2)
    (one, gradient), _ = CopiedArguments((weight, weight.grad), {}, []).copied()
    gradient.add_(1.0)
    assert one.grad.tolist() == [1, 1] and weight.grad.tolist() == [0, 0]


def test_an_optimizer_stays_itself() -> None:
    """What is compiled for one serves no copy of it."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(2)
    own = [*model.parameters(), model]
    args, kwargs = CopiedArguments((model, x), {"held": [optimizer]}, own).copied()
    assert args[0] is model and args[1] is not x
    assert kwargs["held"] is not None and kwargs["held"][0] is optimizer
