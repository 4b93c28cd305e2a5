"""Import of JAX functions: serialized by `jax.export`, or live in this process.

`load` needs the package `flatbuffers` (install `tensorkiln[jax]`) and no JAX. `jit` needs JAX.
"""

from importlib.util import find_spec

if find_spec("flatbuffers") is None:
    raise ModuleNotFoundError(
        "Functions of jax.export need the package flatbuffers: run `pip install 'tensorkiln[jax]'`.", name="flatbuffers"
    )

from .exported import Aval, Exported, read_exported
from .jit import Jitted, jit
from .load import load
from .model import JaxModel, JaxProgram, Signature
from .tree import Tree

__all__ = [
    "Aval",
    "Exported",
    "JaxModel",
    "JaxProgram",
    "Jitted",
    "Signature",
    "Tree",
    "jit",
    "load",
    "read_exported",
]
