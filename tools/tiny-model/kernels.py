"""The kernels of kernels.c as PyTorch functions, with their gradients.

Tensors are dense float32 unless said otherwise. `make kernels` builds the library that is loaded
when the first kernel runs.
"""

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor

from model_spec import HEAD_SIZE, RMS_EPSILON, ROPE_BASE
from paths import BUILD


@functools.cache
def _library() -> ctypes.CDLL:
    path = BUILD / "kernels.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make kernels` first")
    return ctypes.CDLL(str(path))


def _call(name: str, *arguments: Any) -> None:
    """Call a kernel: tensors pass as pointers, int and float as C's int and float."""
    converted: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            assert argument.is_contiguous()
            converted.append(ctypes.c_void_p(argument.data_ptr()))
        elif isinstance(argument, float):
            converted.append(ctypes.c_float(argument))
        else:
            converted.append(ctypes.c_int(argument))
    getattr(_library(), name)(*converted)


def rope_angles(positions: int) -> Tensor:
    """[positions, HEAD_SIZE]: cosine and sine of each pair of a head."""
    pairs = torch.arange(0, HEAD_SIZE, 2, dtype=torch.float64)
    frequencies = ROPE_BASE ** (-pairs / HEAD_SIZE)
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * frequencies[None]
    return torch.stack([angles.cos(), angles.sin()], -1).reshape(positions, HEAD_SIZE).float()


class Attention(torch.autograd.Function):
    """Causal attention with rotated queries and keys, each document for itself.

    rows: [n, (heads + 2 * kv_heads) * HEAD_SIZE]: queries, keys, values. starts: int32, the first
    row of each document and the end. Result: [n, heads * HEAD_SIZE].
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, starts: Tensor, heads: int, kv_heads: int, angles: Tensor
    ) -> Tensor:
        """Run attention_forward."""
        count = rows.shape[0]
        out, log_sums = torch.empty(count, heads * HEAD_SIZE), torch.empty(count, heads)
        ctx.sizes = len(starts) - 1, heads, kv_heads
        _call("attention_forward", rows, starts, *ctx.sizes, angles, out, log_sums)
        ctx.save_for_backward(rows, starts, angles, out, log_sums)
        return out

    @staticmethod
    def backward(ctx: Any, out_gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        """Run attention_backward."""
        rows, starts, angles, out, log_sums = ctx.saved_tensors
        gradient = torch.empty_like(rows)
        inputs = rows, starts, *ctx.sizes, angles, out, log_sums, out_gradient.contiguous()
        _call("attention_backward", *inputs, gradient)
        return gradient, None, None, None, None


class RmsNorm(torch.autograd.Function):
    """Rows divided by their root mean square, times a weight per column."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor) -> Tensor:
        """Run rms_norm_forward."""
        out, inverse_roots = torch.empty_like(rows), torch.empty(rows.shape[0])
        _call("rms_norm_forward", rows, weight, out, inverse_roots, *rows.shape, RMS_EPSILON)
        ctx.save_for_backward(rows, weight, inverse_roots)
        return out

    @staticmethod
    def backward(ctx: Any, out_gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Run rms_norm_backward."""
        rows, weight, inverse_roots = ctx.saved_tensors
        gradient, weight_gradient = torch.empty_like(rows), torch.zeros_like(weight)
        inputs = rows, weight, inverse_roots, out_gradient.contiguous()
        _call("rms_norm_backward", *inputs, gradient, weight_gradient, *rows.shape)
        return gradient, weight_gradient


class SwiGlu(torch.autograd.Function):
    """rows: [n, 2 * width], gate and up. Result: silu(gate) * up, [n, width]."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        """Run swiglu_forward."""
        count, width = rows.shape[0], rows.shape[1] // 2
        out = torch.empty(count, width)
        _call("swiglu_forward", rows, out, count, width)
        ctx.save_for_backward(rows)
        return out

    @staticmethod
    def backward(ctx: Any, out_gradient: Tensor) -> Tensor:
        """Run swiglu_backward."""
        (rows,) = ctx.saved_tensors
        gradient = torch.empty_like(rows)
        sizes = rows.shape[0], rows.shape[1] // 2
        _call("swiglu_backward", rows, out_gradient.contiguous(), gradient, *sizes)
        return gradient


class OutputLoss(torch.autograd.Function):
    """Mean cross-entropy of rows @ embedding.T against int32 targets, and which targets win.

    row_weights weigh the gradient of each row but not the loss that is returned. The gradient
    takes for granted that the loss is what is differentiated (its own gradient is 1).
    """

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        embedding: Tensor,
        targets: Tensor,
        row_weights: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Run cross_entropy, which leaves the gradient of the logits in their place."""
        logits = rows @ embedding.t()
        count, width = logits.shape
        losses, hits = torch.empty(count), torch.empty(count, dtype=torch.uint8)
        _call("cross_entropy", logits, targets, losses, hits, count, width, 1.0 / count)
        if row_weights is not None:
            logits *= row_weights[:, None]
        ctx.save_for_backward(rows, embedding, logits)
        ctx.mark_non_differentiable(hits)
        return losses.mean(), hits

    @staticmethod
    def backward(ctx: Any, _loss_gradient: Tensor, _: Any) -> tuple[Tensor, Tensor, None, None]:
        """The gradient of the logits was made in the forward pass."""
        rows, embedding, logits_gradient = ctx.saved_tensors
        return logits_gradient @ embedding, logits_gradient.t() @ rows, None, None
