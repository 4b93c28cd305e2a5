"""One process per task: a warm fork server forks it, limits it, watches it, and reports how it ended.

The service's process talks to the fork server over a socket pair of datagrams (`control`), and to each task over a
socket pair of length-prefixed frames (`frames`). Nothing is pickled.
"""
