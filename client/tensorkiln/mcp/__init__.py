"""Tools for programs that speak the Model Context Protocol: of a service at `/mcp`, and of `kiln mcp` on this machine.

A tool is requests to the service with the caller's credential. `tools` needs no package of the protocol; `server` does.
"""
