"""Argument arrays of a plan in a block: known addresses are written once, the rest at each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .address import Address
from .plan import Plan

_Places = list[tuple[Any, int, int]]
"""Places to patch: an array of addresses, the position in it, and the offset to add to the base."""


class Slots:
    """The places for the addresses of a call, one call at a time. `start` is the address of the block."""

    def __init__(self, plan: Plan[Any], start: int) -> None:
        self._plan = plan
        self._start = start
        self._inputs: list[_Places] = [[] for _ in plan.inputs]
        self._outputs: list[_Places] = [[] for _ in plan.outputs]
        self._input_addresses: tuple[int, ...] = ()
        self._output_addresses: tuple[int, ...] = ()

    def fill(self, values: Any, arguments: Sequence[Address], worker: int = 0) -> None:
        """Write addresses into the first entries of `values`: now, or at each call where the base is an array of it.

        Scratch addresses are those of `worker`.
        """
        for slot, argument in enumerate(arguments):
            match argument.base:
                case "input":
                    self._inputs[argument.index].append((values, slot, argument.offset))
                case "output":
                    self._outputs[argument.index].append((values, slot, argument.offset))
                case "scratch":
                    share = self._plan.scratch_start + worker * self._plan.scratch_size
                    values[slot] = self._start + share + argument.offset
                case _:
                    values[slot] = self.locate(argument)

    def aim(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """Write the addresses that depend on the arrays of a call, unless they are those of the last one."""
        if inputs == self._input_addresses and outputs == self._output_addresses:
            return
        self._input_addresses = inputs
        self._output_addresses = outputs
        for places, base in zip(self._inputs, inputs, strict=True):
            for values, slot, offset in places:
                values[slot] = base + offset
        for places, base in zip(self._outputs, outputs, strict=True):
            for values, slot, offset in places:
                values[slot] = base + offset

    def locate(self, address: Address) -> int:
        """The absolute address, for the arrays given to `aim`."""
        match address.base:
            case "input":
                return self._input_addresses[address.index] + address.offset
            case "output":
                return self._output_addresses[address.index] + address.offset
            case "block":
                return self._start + address.offset
            case _:
                return address.offset
