"""Other tools that do what Limpet does, each in an environment of its own below bench/out. Only with `--peers`."""
