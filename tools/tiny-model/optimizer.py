"""Muon for the matrices, AdamW for the embedding and the norms."""

import math

import torch
from torch import Tensor

from model import Model


def _orthogonalized(matrix: Tensor, steps: int = 5) -> Tensor:
    """About the nearest matrix with singular values near 1 (Newton-Schulz iteration)."""
    x = matrix / (matrix.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.t()
    for _ in range(steps):
        product = x @ x.t()
        x = 3.4445 * x + (-4.7750 * product + 2.0315 * (product @ product)) @ x
    return x.t() if tall else x


class Optimizer:
    """Steps on the gradients of a model; each step gets its share of the full rates."""

    def __init__(
        self, model: Model, muon_rate: float, adam_rate: float, weight_decay: float
    ) -> None:
        self._muon_rate, self._adam_rate = muon_rate, adam_rate
        self._weight_decay = weight_decay
        self._matrices: list[Tensor] = []
        others: list[Tensor] = []
        for parameter in model.parameters():
            by_muon = parameter.ndim == 2 and parameter is not model.embedding
            (self._matrices if by_muon else others).append(parameter)
        self._averages = [torch.zeros_like(matrix) for matrix in self._matrices]
        self._adam = torch.optim.AdamW(
            others, lr=adam_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
        )

    @torch.no_grad()
    def step(self, rate_share: float, momentum: float) -> None:
        """Change the parameters by their gradients."""
        rate = self._muon_rate * rate_share
        for matrix, average in zip(self._matrices, self._averages):
            assert matrix.grad is not None
            average.mul_(momentum).add_(matrix.grad, alpha=1 - momentum)
            update = _orthogonalized(matrix.grad.mul(1 - momentum).add_(average, alpha=momentum))
            shape_factor = math.sqrt(max(1.0, matrix.shape[0] / matrix.shape[1]))
            matrix.mul_(1 - rate * self._weight_decay).add_(update, alpha=-rate * shape_factor)
        for group in self._adam.param_groups:
            group["lr"] = self._adam_rate * rate_share
        self._adam.step()
