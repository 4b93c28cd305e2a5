"""A module of PyTorch trained through `torch.compile`, beside the same steps without. Needs `pip install torch`."""

import copy
from typing import Any

import torch

import tensorkiln.frontends.torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Linear(16, 3))
twin = copy.deepcopy(model)
x, labels = torch.randn(32, 6), torch.randint(0, 3, (32,))


def train(module: Any, parameters: Any) -> float:
    """Three steps; the loss after them."""
    optimiser = torch.optim.SGD(parameters, lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(x), labels).backward()
        optimiser.step()
    return torch.nn.functional.cross_entropy(module(x), labels).item()


compiled = torch.compile(model, backend=tensorkiln.frontends.torch.backend)
with_kiln, without = train(compiled, model.parameters()), train(twin, twin.parameters())
for name, weight in model.state_dict().items():
    torch.testing.assert_close(weight, twin.state_dict()[name], rtol=1e-4, atol=1e-5)
print(f"loss {with_kiln:.4f}, without tensorkiln {without:.4f}")
