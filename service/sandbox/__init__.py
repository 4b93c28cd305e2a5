"""One process per job: a warm fork server forks it, limits it, watches it, and tells how it ended.

One that did a job for an owner may do the next ones of that owner.

The service's process talks to the fork server over a socket pair of datagrams (`control`), and to each job over a
socket pair of length-prefixed frames (`frames`). Nothing is pickled.
"""
