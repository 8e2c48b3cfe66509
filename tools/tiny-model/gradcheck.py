#!/usr/bin/python3
"""Compare the kernels and their gradients with plain PyTorch; fails when they differ."""

import argparse
import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from kernels import Attention, OutputLoss, RmsNorm, SwiGlu, rope_angles
from model_spec import HEAD_SIZE, RMS_EPSILON

_HEADS, _KV_HEADS = 6, 2
_STARTS = (0, 5, 42, 43, 111)  # documents of 5, 37, 1 and 68 tokens
_TOLERANCE = 2e-5  # of the largest value


def _rotated(heads: Tensor, angles: Tensor) -> Tensor:
    """[tokens, heads, HEAD_SIZE], each pair turned by the angle of its position."""
    pairs = heads.unflatten(-1, (HEAD_SIZE // 2, 2))
    cosines, sines = angles.view(-1, 1, HEAD_SIZE // 2, 2).unbind(-1)
    x, y = pairs.unbind(-1)
    return torch.stack([x * cosines - y * sines, x * sines + y * cosines], -1).flatten(2)


def _plain_attention(rows: Tensor, angles: Tensor) -> Tensor:
    """Attention over one document."""
    length = rows.shape[0]
    heads = rows.view(length, -1, HEAD_SIZE)
    queries, keys, values = heads.split([_HEADS, _KV_HEADS, _KV_HEADS], dim=1)
    copies = _HEADS // _KV_HEADS
    keys = _rotated(keys, angles[:length]).repeat_interleave(copies, 1)
    values = values.repeat_interleave(copies, 1)
    scores = torch.einsum("ihd,jhd->hij", _rotated(queries, angles[:length]), keys)
    hidden = torch.ones(length, length).triu(1).bool()
    weights = (scores / HEAD_SIZE**0.5).masked_fill(hidden, float("-inf")).softmax(-1)
    return torch.einsum("hij,jhd->ihd", weights, values).reshape(length, -1)


def _plain_attentions(rows: Tensor, angles: Tensor) -> Tensor:
    bounds = zip(_STARTS, _STARTS[1:])
    return torch.cat([_plain_attention(rows[start:end], angles) for start, end in bounds])


def _plain_norm(rows: Tensor, weight: Tensor) -> Tensor:
    return rows * torch.rsqrt((rows * rows).mean(-1, keepdim=True) + RMS_EPSILON) * weight


def _plain_swiglu(rows: Tensor) -> Tensor:
    gate, up = rows.chunk(2, dim=1)
    return torch.nn.functional.silu(gate) * up


def _results(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], weigh: bool
) -> list[Tensor]:
    """The value, and the gradients of its sum (weighed by fixed random numbers)."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    value = function(*leaves)
    weights = torch.randn(value.shape, generator=torch.Generator().manual_seed(1))
    (value * weights if weigh else value).sum().backward()
    return [value.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def _agrees(
    name: str,
    kernel: Callable[..., Tensor],
    plain: Callable[..., Tensor],
    *inputs: Tensor,
    weigh: bool = True,
) -> bool:
    """Print the largest differences; they are relative to the largest value of each result."""
    pairs = zip(_results(kernel, inputs, weigh), _results(plain, inputs, weigh))
    differences = [float((a - b).abs().max() / b.abs().max()) for a, b in pairs]
    print(f"{name:14}", *(f"{difference:.1e}" for difference in differences))
    return len(differences) == 1 + len(inputs) and max(differences) < _TOLERANCE


def main() -> None:
    """Compare every kernel."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.manual_seed(0)
    starts, angles = torch.tensor(_STARTS, dtype=torch.int32), rope_angles(256)
    attention_rows = torch.randn(_STARTS[-1], (_HEADS + 2 * _KV_HEADS) * HEAD_SIZE)
    targets = torch.randint(0, 99, (50,), dtype=torch.int32)
    print("largest relative difference of the value and of each gradient")
    agreements = [
        _agrees(
            "attention",
            lambda rows: Attention.apply(rows, starts, _HEADS, _KV_HEADS, angles),
            lambda rows: _plain_attentions(rows, angles),
            attention_rows,
        ),
        _agrees("RMSNorm", RmsNorm.apply, _plain_norm, torch.randn(50, 192), torch.randn(192)),
        _agrees("SwiGLU", SwiGlu.apply, _plain_swiglu, torch.randn(50, 128)),
        _agrees(
            "cross-entropy",
            lambda rows, embedding: OutputLoss.apply(rows, embedding, targets)[0],
            lambda rows, embedding: torch.nn.functional.cross_entropy(
                rows @ embedding.t(), targets.long()
            ),
            torch.randn(50, 64),
            torch.randn(99, 64),
            weigh=False,
        ),
    ]
    if not all(agreements):
        sys.exit("the kernels differ from PyTorch")


if __name__ == "__main__":
    main()
