"""Limpet for agent frameworks: one module per framework, each with its own extra. bridge.py has what they share."""
