"""Translation of StableHLO modules to graphs of the wire format. Runs in the sandboxed process only."""
