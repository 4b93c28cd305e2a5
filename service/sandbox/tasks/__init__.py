"""The tasks that a forked process can run. The answer of each depends only on its request."""

from collections.abc import Mapping

from service.sandbox.child import Task

from .checks import canary, ping, trial
from .compile_action import compile_action, measure, render
from .prepare import prepare, split, translate, validate

TASKS: Mapping[str, Task] = {
    "canary": canary,
    "compile": compile_action,
    "ping": ping,
    "prepare": prepare,
    "render": render,
    "split": split,
    "translate": translate,
    "trial": trial,
    "tune": measure,
    "validate": validate,
}
