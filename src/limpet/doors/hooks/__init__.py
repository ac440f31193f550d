"""Hooks of coding agents: one JSON event on standard input, one answer on standard output.

`process` is the process around a hook: it always answers in time. The agent's file in `clients/` reads the
event and writes the answer. `triage` decides what to do about an event without opening the store; most hooks end there.
The work is in `actions`, one function per action.
"""
