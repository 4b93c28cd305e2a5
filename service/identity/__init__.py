"""Who asks, for which tenant, and what they may do: API keys, tokens of other issuers, scopes, ownership."""
