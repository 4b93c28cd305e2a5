"""Tools of the Model Context Protocol, served by a service at `/mcp` and by `kiln mcp` on this machine.

A tool sends requests to the service with the caller's credential. Only `server` needs the package `mcp`.
"""
