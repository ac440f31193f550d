"""Previews of stored outputs: few tokens, enough to decide by, and every failure shown or counted.

Every shape of output has a score (how likely a text has this shape) and a function that renders it on a sheet;
preview.py lists them. The first line of a preview says what the output is, how long it is and how many of its lines
report failures.
"""
