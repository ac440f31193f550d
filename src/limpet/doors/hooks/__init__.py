"""Hooks of coding agents: one JSON event on standard input, one answer on standard output, and never in the way.

`dialects` knows how each client words its events and answers, `events` what is done about them, `run` is the process
around it: it answers within seconds whatever happens, and what goes wrong goes into a log and not into the agent.
"""
