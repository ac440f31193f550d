"""Previews of stored outputs: few tokens, enough to decide by, and every failure shown or counted.

Every shape of output has a module with `score` (how likely the text has this shape) and `render` (what goes on the
sheet). The first line of a preview says what the output is, how long it is and how many of its lines report failures.
"""
