"""Recurrent layers as one operator: few steps, and more than an importer unrolls."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .case import Case, drawn, of

FEW, MANY = 4, 35


def batched(axis: int) -> tuple[dict[int, tuple[str, int, int]], ...]:
    """The batch is dynamic."""
    return ({axis: ("batch", 2, 9)},)


class Given(nn.Module):
    """An LSTM with two layers, whose first states are given, and of which all results are read."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2)

    def forward(self, x: Tensor, state: Tensor, cells: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found, (last, last_cells) = self.lstm(x, (state, cells))
        return found, last, last_cells


def doubles(x: Tensor, state: Tensor, into: Tensor, over: Tensor) -> tuple[Tensor, Tensor]:
    """A GRU of 64 bits without biases."""
    return torch.gru(x.double(), state.double(), [into.double(), over.double()], False, 1, 0.0, False, False, False)


CASES: dict[str, Case] = {
    "lstm_few": of(nn.LSTM(3, 5), drawn(FEW, 2, 3), more=[(drawn(FEW, 7, 3),)], dynamic=batched(1)),
    "lstm_many": of(nn.LSTM(3, 5), drawn(MANY, 2, 3), more=[(drawn(MANY, 7, 3),)], dynamic=batched(1)),
    "lstm_given": of(Given(), drawn(MANY, 3, 3), drawn(4, 3, 2), drawn(4, 3, 4)),
    "gru_many": of(
        nn.GRU(3, 5, 2, batch_first=True), drawn(4, MANY, 3), more=[(drawn(2, MANY, 3),)], dynamic=batched(0)
    ),
    "gru_both": of(nn.GRU(3, 5, bidirectional=True), drawn(FEW, 2, 3)),
    "gru_doubles": of(doubles, drawn(MANY, 2, 3), drawn(1, 2, 5), drawn(15, 3), drawn(15, 5)),
    "rnn_many": of(nn.RNN(3, 5, bidirectional=True), drawn(MANY, 2, 3)),
    "rnn_relu": of(nn.RNN(3, 5, nonlinearity="relu", bias=False), drawn(FEW, 2, 3) * 0.1),
}
