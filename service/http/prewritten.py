"""Parts of answers that are written in the sandbox: this process hands them on, and has no use for their models.

Those describe graphs and programs, and to import them takes a third of a service's start.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from service import wire


class Prewritten:
    """Annotates what is not validated here, and is in the OpenAPI document what the model `name` of `module` is.

    A `module` that begins with a dot is one of `service.wire`.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        model: type[BaseModel] = getattr(import_module(self._module, wire.__name__), self._name)
        return handler(model.__pydantic_core_schema__)
