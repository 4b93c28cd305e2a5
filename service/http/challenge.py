"""The headers that go with a refusal (RFC 9110 section 11.6.1, RFC 6750 section 3)."""

from __future__ import annotations

from typing import Final

from tensorkiln.errors import AuthError, ForbiddenError, MissingCredentialError, RateLimitedError, TensorkilnError

_REALM: Final = 'Bearer realm="tensorkiln"'


def refusal_headers(error: TensorkilnError) -> dict[str, str]:
    """`WWW-Authenticate` for who is not let in, `Retry-After` (seconds) for who is to come back."""
    if isinstance(error, RateLimitedError):
        return {"Retry-After": str(error.retry_after_s)}
    if not isinstance(error, AuthError):
        return {}
    if isinstance(error, MissingCredentialError):
        return {"WWW-Authenticate": _REALM}
    if isinstance(error, ForbiddenError):
        scope = " ".join(error.details.get("scopes", ()))
        return {"WWW-Authenticate": f'{_REALM}, error="insufficient_scope"' + (f', scope="{scope}"' if scope else "")}
    return {"WWW-Authenticate": f'{_REALM}, error="invalid_token"'}
