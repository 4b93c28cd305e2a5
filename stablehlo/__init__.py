"""StableHLO modules as graphs of the wire format. It is parsed and translated in the sandboxed process only."""
