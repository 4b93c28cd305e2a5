"""What the OpenAPI document says about credentials."""

from __future__ import annotations

from typing import Any, Final

from service.identity.policy import PUBLIC
from tensorkiln.errors import (
    ExpiredCredentialError,
    ForbiddenError,
    InvalidCredentialError,
    MissingCredentialError,
    RateLimitedError,
)

from .problems import documented

_SCHEME: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, or a token of an issuer that the service trusts.",
}
# Without a credential as well: a service on the loopback may ask for none.
_SECURITY: Final[list[dict[str, list[str]]]] = [{}, {"bearer": []}]
_REFUSALS: Final = documented(
    MissingCredentialError, InvalidCredentialError, ExpiredCredentialError, ForbiddenError, RateLimitedError
)


def describe_credentials(document: dict[str, Any]) -> None:
    """Add to `document` how to show who asks, and what happens to those who do not."""
    document.setdefault("components", {}).setdefault("securitySchemes", {})["bearer"] = _SCHEME
    for path, operations in document["paths"].items():
        if path in PUBLIC:
            continue
        for method, operation in operations.items():
            operation["security"] = _SECURITY
            for status, response in _REFUSALS.items():
                # An answer to HEAD has no body.
                documented_as = {"description": response["description"]} if method == "head" else response
                operation["responses"].setdefault(str(status), documented_as)
