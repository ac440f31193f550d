"""How well recall finds what is meant, beside plain baselines on the same texts. See `python -m bench.recall -h`."""
