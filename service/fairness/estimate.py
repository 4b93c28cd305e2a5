"""What a task will cost, by what tasks of its size have cost before."""

from __future__ import annotations

from typing import Final

# How much the newest task counts: about the last twenty are remembered.
_SHARE: Final = 0.1
_FIRST_S: Final = 0.1


class Estimate:
    """Seconds by size in bytes, in classes of powers of two: the running mean of the class, or of the nearest below.

    From a class below, the cost is taken to grow with the size.
    """

    def __init__(self) -> None:
        self._mean: dict[int, float] = {}

    def seconds(self, size: int) -> float:
        """What a task of this size is expected to cost."""
        wanted = size.bit_length()
        for known in range(wanted, -1, -1):
            if known in self._mean:
                return self._mean[known] * 2.0 ** (wanted - known)
        return min(self._mean.values(), default=_FIRST_S)

    def learn(self, size: int, seconds: float) -> None:
        """A task of this size has cost that."""
        known = self._mean.setdefault(size.bit_length(), seconds)
        self._mean[size.bit_length()] = known + _SHARE * (seconds - known)
