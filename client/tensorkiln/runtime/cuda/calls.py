"""One call of a program: its memory, and the addresses of its inputs."""

from __future__ import annotations

from collections.abc import Sequence

from ..arguments import InputSpec
from ..memory import Array
from ..pool import Pool
from .context import Context
from .driver import OutOfDeviceMemoryError
from .memory import DeviceBlock
from .operands import DeviceOperand, HostOperand, Operand
from .streams import Event, Stream


class Call:
    """The memory that a call on `stream` holds until `end`, or until `abandon` after an error."""

    def __init__(self, context: Context, stream: Stream) -> None:
        self._context = context
        self._stream = stream
        self._lent: list[tuple[DeviceBlock, Pool[DeviceBlock]]] = []
        self.held_bytes = 0

    def take(self, pool: Pool[DeviceBlock], size: int, what: str, writer: Stream | None = None) -> DeviceBlock:
        """A block for this call only, ready for writes by the call's stream or by `writer`.

        OutOfDeviceMemoryError when there is no room; `what` is the start of its message.
        """
        try:
            block = pool.take(size)
        except OutOfDeviceMemoryError as error:
            raise error.on_behalf_of(what, size) from error
        self._lent.append((block, pool))
        self.held_bytes += block.size
        block.prepare(writer or self._stream)
        return block

    def place(self, specs: Sequence[InputSpec], operands: Sequence[Operand], alignments: Sequence[int]) -> list[int]:
        """The addresses of the inputs `specs`. Host arrays are copied now, misaligned device arrays on the stream."""
        addresses: list[int] = []
        uploads: list[tuple[DeviceBlock, Array]] = []
        for spec, operand, alignment in zip(specs, operands, alignments, strict=True):
            what = f"a copy of {spec} takes"
            if isinstance(operand, HostOperand):
                block = self.take(self._context.results, operand.array.nbytes, what, self._context.copies)
                uploads.append((block, operand.array))
                addresses.append(block.address)
            else:
                addresses.append(self._aligned(operand, alignment, what))
        self._context.upload(uploads)
        return addresses

    def _aligned(self, operand: DeviceOperand, alignment: int, what: str) -> int:
        if operand.ready is not None:
            operand.ready.hold(self._stream)
        if operand.address % alignment == 0:
            return operand.address
        block = self.take(self._context.results, operand.nbytes, what)
        if operand.nbytes:
            self._context.driver.copy(block.address, operand.address, operand.nbytes, self._stream.handle)
        return block.address

    def end(self, operands: Sequence[Operand], others: Sequence[DeviceBlock]) -> Event:
        """Record the end of the call's use of its operands and of `others`, further blocks that it uses.

        The call's blocks go back to their pools, for work that waits for this event.
        """
        done = self._context.record(self._stream)
        own = [operand.block for operand in operands if isinstance(operand, DeviceOperand) and operand.block]
        for block in (*own, *others, *(block for block, _ in self._lent)):
            block.used(done)
        self._give_back()
        if any(isinstance(operand, DeviceOperand) and operand.is_foreign for operand in operands):
            done.wait()
        return done

    def abandon(self) -> None:
        """Return all blocks after an error, once the work that was launched has finished."""
        self._context.driver.synchronize(self._stream.handle)
        self._give_back()

    def _give_back(self) -> None:
        for block, pool in self._lent:
            pool.give(block)
        self._lent.clear()
