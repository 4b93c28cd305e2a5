"""Import of PyTorch programs: exported ones, with or without torch installed, and graphs of `torch.compile`."""

from typing import TYPE_CHECKING

from ...on_first_use import on_first_use

if TYPE_CHECKING:
    from .compiling import backend as backend
    from .from_export import decompositions as decompositions
    from .loading import load as load
    from .model import CompiledModule as CompiledModule
    from .model import TorchModel as TorchModel
    from .operators import FAMILIES as FAMILIES
    from .operators import OPERATORS as OPERATORS
    from .refused import REFUSED as REFUSED

__getattr__ = on_first_use(
    __name__,
    {
        "compiling": "backend",
        "from_export": "decompositions",
        "loading": "load",
        "model": "CompiledModule TorchModel",
        "operators": "FAMILIES OPERATORS",
        "refused": "REFUSED",
    },
)

__all__ = ["FAMILIES", "OPERATORS", "REFUSED", "CompiledModule", "TorchModel", "backend", "decompositions", "load"]
