"""The network: a decoder of the Llama architecture with tied embeddings, and its head start."""

import dataclasses
import math

import torch
from torch import Tensor
from torch.nn import Parameter

from kernels import Attention, OutputLoss, RmsNorm, SwiGlu, rope_angles
from model_spec import CONTEXT_TOKENS, HEAD_SIZE, ROPE_BASE, ModelSpec

_SMALL = 0.02  # scale of matrices that write into the residual stream


def _matrix(rows: int, columns: int, scale: float = 1.0) -> Parameter:
    return Parameter(torch.randn(rows, columns) * scale / math.sqrt(columns))


@dataclasses.dataclass
class Batch:
    """Documents end to end, and the answer tokens on which the loss is."""

    ids: Tensor
    starts: Tensor  # int32: the first token of each document, and the end
    positions: Tensor  # before each answer token
    targets: Tensor  # int32: the answer tokens


class Layer(torch.nn.Module):
    """The weights of one layer. Rows of query_key: the query heads, then the key heads."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        query_rows, key_rows = spec.heads * HEAD_SIZE, spec.kv_heads * HEAD_SIZE
        self.attention_norm = Parameter(torch.ones(spec.width))
        self.feed_forward_norm = Parameter(torch.ones(spec.width))
        self.query_key = _matrix(query_rows + key_rows, spec.width)
        self.value = _matrix(key_rows, spec.width)
        self.attention_output = _matrix(spec.width, query_rows, _SMALL)
        self.gate = _matrix(spec.feed_forward, spec.width)
        self.up = _matrix(spec.feed_forward, spec.width)
        self.down = _matrix(spec.width, spec.feed_forward, _SMALL)


class Model(torch.nn.Module):
    """The whole network."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.embedding = Parameter(torch.randn(spec.vocabulary, spec.width) * 0.05)
        self.output_norm = Parameter(torch.ones(spec.width))
        self.layers = torch.nn.ModuleList(Layer(spec) for _ in range(spec.layers))
        self._angles = rope_angles(CONTEXT_TOKENS)
        give_head_start(self)

    def forward(
        self, batch: Batch, token_weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The loss on the answer tokens, and for each whether it is the most likely one."""
        heads, kv_heads = self.spec.heads, self.spec.kv_heads
        x = self.embedding[batch.ids]
        for layer in self.layers:
            normed = RmsNorm.apply(x, layer.attention_norm)
            rows = normed @ torch.cat([layer.query_key, layer.value]).t()
            seen = Attention.apply(rows, batch.starts, heads, kv_heads, self._angles)
            x = x + seen @ layer.attention_output.t()
            normed = RmsNorm.apply(x, layer.feed_forward_norm)
            hidden = SwiGlu.apply(normed @ torch.cat([layer.gate, layer.up]).t())
            x = x + hidden @ layer.down.t()
        rows = RmsNorm.apply(x[batch.positions], self.output_norm)
        loss, hits = OutputLoss.apply(rows, self.embedding, batch.targets, token_weights)
        return loss, hits


def _orthogonal(rows: int, columns: int) -> Tensor:
    return torch.linalg.qr(torch.randn(max(rows, columns), min(rows, columns)))[0]


def _look_back(model: Model) -> None:
    """Heads 0 and 1 of layer 0 attend one and two tokens back, whatever stands there.

    Feature 0 of every embedding is a constant; queries and keys read only it, and the queries are
    turned by one or two positions.
    """
    layer, spec = model.layers[0], model.spec
    half = HEAD_SIZE // 2
    key = slice(spec.heads * HEAD_SIZE, (spec.heads + 1) * HEAD_SIZE)
    angles = ROPE_BASE ** (-torch.arange(half) / half)
    amplitudes = torch.where(torch.arange(half) < 9, torch.tensor(0.9), torch.tensor(0.0))
    amplitudes[0] *= 1.7
    model.embedding[:, 0] = 0.3
    layer.query_key[: 2 * HEAD_SIZE] *= 0.2
    layer.query_key[key] *= 0.2
    for head in range(2):
        distance = float(head + 1)
        query = layer.query_key[head * HEAD_SIZE : (head + 1) * HEAD_SIZE]
        query[0::2, 0] = amplitudes * torch.cos(distance * angles)
        query[1::2, 0] = -amplitudes * torch.sin(distance * angles)
    layer.query_key[key][0::2, 0] = amplitudes
    layer.query_key[key][1::2, 0] = 0


def _induce(model: Model) -> None:
    """Head 0 of layer 1 finds the token whose predecessor equals the current one and copies it.

    Head 0 of layer 0 writes the content of each token's predecessor through `carried`. The match
    uses the slowly turning half of a head, in which content survives the rotation.
    """
    first, second, spec = model.layers[0], model.layers[1], model.spec
    half, width = HEAD_SIZE // 2, spec.width
    key_start = spec.heads * HEAD_SIZE
    content, carried = _orthogonal(width, HEAD_SIZE).t().clone(), _orthogonal(width, HEAD_SIZE)
    content[:, 0] = 0  # the constant is of no use for matching
    first.value[:HEAD_SIZE] = content
    first.attention_output[:, :HEAD_SIZE] = carried * 0.08
    second.query_key[:HEAD_SIZE] *= 0.2
    second.query_key[key_start : key_start + HEAD_SIZE] *= 0.2
    second.query_key[half:HEAD_SIZE] = content[half:] * 2.5
    second.query_key[key_start + half : key_start + HEAD_SIZE] = carried.t()[half:] * 2.5
    copied = _orthogonal(width, HEAD_SIZE).t().clone()
    copied[:, 0] = 0
    second.value[:HEAD_SIZE] = copied
    second.attention_output[:, :HEAD_SIZE] = copied.t() * 0.6


@torch.no_grad()
def give_head_start(model: Model) -> None:
    """Start with the heads that make copying possible.

    Found out of random weights alone they would cost a large part of a short training on a CPU.
    """
    _look_back(model)
    _induce(model)
