"""What JAX exports, written to `exported/` by hand: `python tests/stablehlo/export/jax_modules.py`, with JAX installed.

JAX is no dependency of the tests. Each artifact is of the oldest version that JAX writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import export

HERE = Path(__file__).parents[1] / "exported"


def layer(x: Any, weight: Any, bias: Any) -> Any:
    """A layer with a softmax: rows are a symbol."""
    return jax.nn.softmax(jax.nn.gelu(x @ weight + bias))


def numbers(key: Any) -> Any:
    """Random numbers from a key, by a loop that JAX keeps rolled on CPUs."""
    return jax.random.normal(jax.random.wrap_key_data(key), (3, 4))


def places(x: Any, at: Any) -> Any:
    """Rows read, put and added at positions, and the order of their elements."""
    return x[at], x.at[at].add(1.0), jnp.argmax(x, 1), jnp.sort(x, 1), jax.lax.top_k(x, 2)


def pairs(x: Any, y: Any) -> Any:
    """Two arguments whose rows are one symbol."""
    return jnp.concatenate([x, y], 1) * jnp.arange(x.shape[0])[:, None] + y.mean(0, keepdims=True)[:, :1]


def mesh(size: int) -> Any:
    """Devices along an axis that has a name."""
    kinds = (jax.sharding.AxisType.Auto,)
    return jax.make_mesh((size,), ("rows",), axis_types=kinds, devices=jax.devices()[:size])


def sharded(x: Any, key: Any) -> Any:
    """Values with places on a mesh of one device, and keys, which have such too."""
    here = jax.NamedSharding(mesh(1), jax.P("rows"))
    moved = jax.lax.with_sharding_constraint(x * 2, here)
    keys = jax.random.split(jax.random.wrap_key_data(key))
    return moved + x.sum(), jax.random.key_data(keys), jax.random.wrap_key_data(key)


def mapped(x: Any) -> Any:
    """A function of what one of two devices has."""
    return jax.shard_map(lambda part: part * 2, mesh=mesh(2), in_specs=jax.P("rows"), out_specs=jax.P("rows"))(x)


def main() -> None:
    """Write every artifact."""
    jax.config.update("jax_num_cpu_devices", 2)
    # Paths of this machine are nobody's affair.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    (rows,) = export.symbolic_shape("rows")
    of = jax.ShapeDtypeStruct
    exported = {
        "layer": (layer, of((rows, 4), "float32"), of((4, 6), "float32"), of((6,), "float32")),
        "numbers": (numbers, of((2,), "uint32")),
        "places": (places, of((5, 3), "float32"), of((4,), "int32")),
        "sharded": (sharded, of((4, 3), "float32"), of((2,), "uint32")),
        "mapped": (mapped, of((4, 3), "float32")),
        "pairs": (pairs, of((rows, 2), "float32"), of((rows, 3), "float32")),
    }
    for name, (function, *arguments) in exported.items():
        made = export.export(jax.jit(function), platforms=["cpu"])(*arguments)
        (HERE / f"{name}.mlirbc").write_bytes(made.mlir_module_serialized)


if __name__ == "__main__":
    main()
