"""The canary: a process that attempts operations which confinement must refuse, and others which it must allow."""
