"""Authentication and authorization: API keys, tokens of other issuers, tenants, scopes, ownership."""
