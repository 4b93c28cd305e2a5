"""Long histories of calls on several streams, with arrays dropped, shown to others and reused in any order.

Work of the emulated device happens as late as it may, so whatever is not waited for is wrong at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import capsules
from tests.runtime.cuda.foreign import WithDlpack, WithInterface
from tests.runtime.cuda.kernels import ADD, DOUBLE, INCREMENT
from tests.runtime.cuda.sketch import CudaSketch
from tests.runtime.test_items import sort_item
from tests.simt.driver import EmulatedDriver

N = symbol("n")
SIZES = (3, 40, 64)
STEPS = 120
Array = np.ndarray[Any, Any]


def programs(driver: EmulatedDriver) -> list[tuple[Program, Any]]:
    """Programs of two inputs, each with what it computes."""
    plain, longer, calling = (CudaSketch(symbols={"n": (0, 1000)}) for _ in range(3))
    for sketch in (plain, longer, calling):
        left, right = sketch.buffer([N], "input"), sketch.buffer([N], "input")
        if sketch is plain:
            sketch.elementwise(ADD, "add", [left, right, sketch.buffer([N], "output")])
            continue
        total, doubled = sketch.buffer([N]), sketch.buffer([N])
        sketch.elementwise(ADD, "add", [left, right, total])
        if sketch is longer:
            sketch.elementwise(DOUBLE, "double_it", [total, doubled])
        else:
            sketch.operations.append(sort_item(total, doubled))
        sketch.elementwise(INCREMENT, "increment", [doubled, sketch.buffer([N], "output")])
        sketch.bind(total, sketch.outputs)
    return [
        (plain.gpu_program(driver), lambda x, y: (x + y,)),
        (longer.gpu_program(driver), lambda x, y: (2 * (x + y) + 1, x + y)),
        (calling.gpu_program(driver), lambda x, y: (np.sort(x + y) + 1, x + y)),
    ]


@dataclass
class History:
    """Arrays on the device beside what they must hold."""

    random: Random
    driver: EmulatedDriver
    known: list[tuple[Any, Array]] = field(default_factory=list[tuple[Any, Array]])
    held: list[object] = field(default_factory=list[object])

    def operand(self, size: int) -> tuple[Any, Array]:
        """An argument of a call, and its contents."""
        values = np.full(size, self.random.randrange(100), np.float32)
        fitting = [pair for pair in self.known if pair[1].size == size]
        if fitting and self.random.random() < 0.6:
            return self.random.choice(fitting)
        kind = self.random.randrange(4)
        if kind == 0:
            with self.driver.scope():
                stream = self.driver.create_stream()
            offer = self.random.choice((WithDlpack, WithInterface))
            return offer(self.driver, values, after=stream, offset=self.random.choice((0, 4, 256))), values
        return values, values.copy()

    def step(self, choices: list[tuple[Program, Any]]) -> None:
        """Call a program, or do something with what there is."""
        program, computes = self.random.choice(choices)
        size = self.random.choice(SIZES)
        (left, x), (right, y) = self.operand(size), self.operand(size)
        match self.random.randrange(12):
            case 0 if self.known:
                array, values = self.random.choice(self.known)
                assert array.numpy().tolist() == values.tolist()
            case 1 if self.known:
                array, _ = self.random.choice(self.known)
                self.held.append(capsules.Import(array.__dlpack__(stream=self.random.choice((None, 1, 2, -1)))))
            case 2 if self.known:
                array, values = self.random.choice(self.known)
                shown = array.__cuda_array_interface__
                self.held.append((array, shown["data"]))
            case 3:
                del self.held[: self.random.randrange(3)]
            case 4:
                bound = program.bind({100: left})
                self.known += zip(bound(right, n=size), computes(x, y), strict=True)
            case _:
                self.known += zip(program(left, right, n=size), computes(x, y), strict=True)
                if isinstance(left, np.ndarray):
                    left[:] = -1
        while len(self.known) > 12:
            self.known.pop(self.random.randrange(len(self.known)))


@pytest.mark.parametrize("seed", range(12))
def test_every_array_holds_what_was_computed(seed: int) -> None:
    random, driver = Random(seed), EmulatedDriver({}, watched=seed % 3 == 0)
    choices = programs(driver)
    with driver.scope():
        streams = [driver.create_stream() for _ in range(2)]
    choices += [(program.on(stream), computes) for program, computes in choices for stream in streams]
    history = History(random, driver)
    for _ in range(STEPS):
        history.step(choices)
    random.shuffle(history.known)
    for array, values in history.known:
        assert array.numpy().tolist() == values.tolist()
