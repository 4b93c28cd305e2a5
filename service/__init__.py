"""The compiler behind HTTP: the application, its store, and the sandbox in which everything untrusted runs."""
