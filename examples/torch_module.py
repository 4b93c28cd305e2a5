"""A PyTorch module in two ways: `torch.compile`, and an exported program that runs without torch."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from tensorkiln import Client
from tensorkiln.frontends.torch import backend, load

module = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)).eval()
x = torch.randn(4, 6)

with Client() as client, tempfile.TemporaryDirectory() as folder:
    compiled = torch.compile(module, backend=backend, options={"client": client})
    torch.testing.assert_close(compiled(x), module(x))
    compiled(x).square().mean().backward()
    print("gradients of", sum(parameter.grad is not None for parameter in module.parameters()), "parameters")

    path = Path(folder, "module.pt2")
    rows = torch.export.Dim("rows", min=2, max=64)
    exported = torch.export.export(module, (x,), dynamic_shapes=({0: rows},))
    torch.export.save(exported.run_decompositions(), path)

    loaded = load(path).compile_module(client=client)
    for count in (4, 50):
        given = np.linspace(0, 1, count * 6, dtype=np.float32).reshape(count, 6)
        with torch.no_grad():
            wanted = module(torch.from_numpy(given))
        np.testing.assert_allclose(loaded(given), wanted, atol=1e-6)
        print(count, "rows, as PyTorch computes them")
