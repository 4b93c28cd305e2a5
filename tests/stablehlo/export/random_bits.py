"""What XLA draws on CPUs, written to `exported/random_bits.json` by hand, with JAX installed.

`python tests/stablehlo/export/random_bits.py`. The modules go to XLA as they are: `jax.lax.rng_bit_generator` has no
states of three words.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

HERE = Path(__file__).parents[1] / "exported"
BIG = 1 << 64
STATES = (
    ("THREE_FRY", (0x123456789ABCDEF0, BIG - 3)),
    ("PHILOX", (0x123456789ABCDEF0, BIG - 2)),
    ("PHILOX", (0x70000000005, BIG - 2, BIG - 1)),
    ("DEFAULT", (0xC600000000C, BIG // 2 + 5)),
)
"""Counters that carry, and keys whose halves differ."""
KINDS = (
    *("ui32", "1xui32", "5xui32", "2x3xui32", "3x2xui32", "3x5xui32", "3x1x5xui32", "4x6xui32", "0x3xui32"),
    *("ui64", "3x5xui64", "2x2xui64", "3x5xui16", "7xui8"),
)


def drawn(algorithm: str, state: tuple[int, ...], kind: str) -> list[Any]:
    """The state after it, and the bits."""
    words, result = f"tensor<{len(state)}xui64>", f"tensor<{kind}>"
    text = f"""
    func.func @main(%a: {words}) -> ({words}, {result}) {{
      %0:2 = stablehlo.rng_bit_generator %a, algorithm = {algorithm} : ({words}) -> ({words}, {result})
      return %0#0, %0#1 : {words}, {result}
    }}"""
    device = jax.devices()[0]
    program = device.client.compile_and_load(text, jaxlib._jax.DeviceList((device,)))
    return [np.asarray(each) for each in program.execute([jax.device_put(np.array(state, np.uint64))])]


def main() -> None:
    """Write all of them."""
    jax.config.update("jax_enable_x64", True)
    found: list[dict[str, Any]] = []
    for algorithm, state in STATES:
        for kind in KINDS:
            after, bits = drawn(algorithm, state, kind)
            record = {"algorithm": algorithm, "state": state, "kind": kind}
            found.append({**record, "after": after.tolist(), "bits": bits.tolist()})
    lines = ",\n".join(json.dumps(each) for each in found)
    (HERE / "random_bits.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
