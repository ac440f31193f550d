"""Other tools that do what Holdfast does, each in an environment of its own below bench/out. Only with `--peers`."""
