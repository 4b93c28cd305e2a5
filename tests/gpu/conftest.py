"""The bundles that the tests run: those of `KILN_GPU_BUNDLES`, or made here where the compiler is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tensorkiln.errors import DeviceError
from tensorkiln.runtime.cuda import Driver, open_driver

FOLDER = "KILN_GPU_BUNDLES"


@pytest.fixture(scope="session")
def gpu() -> Driver:
    """This machine's first GPU."""
    try:
        return open_driver()
    except DeviceError as error:
        pytest.skip(f"needs a GPU: {error}")


@pytest.fixture(scope="session")
def bundles(gpu: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that `make_bundles` wrote."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given)
    if find_spec("passes") is None or find_spec("torch_mlir") is None:
        pytest.skip(f"needs {FOLDER}, a folder that tests.gpu.make_bundles wrote, or the compiler")
    from tests.gpu.make_bundles import make_bundles

    folder = tmp_path_factory.mktemp("bundles")
    major, minor = gpu.properties.capability
    make_bundles(folder, f"sm_{major}{minor}")
    return folder
