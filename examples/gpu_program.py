"""PTX for an NVIDIA H100. Compiling needs no GPU."""

from tensorkiln import Client
from tensorkiln.build import Builder, exp

b = Builder("softmax")
x = b.input("float32", (b.symbol("n", 1, 4096), 256))
shifted = exp(x - x.max(1, keepdims=True))
b.output(shifted / shifted.sum(1, keepdims=True))

with Client() as client:
    (compiled,) = client.compile_for(b.graph(), ["cuda:sm_90"])
    (artifact,) = compiled.artifacts
    ptx = client.artifact(artifact).decode()
print("\n".join(ptx.splitlines()[:12]))
print([kernel.name for kernel in compiled.kernels])
