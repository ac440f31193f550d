"""Limpet inside the frameworks people build agents with: one module a framework, each with an extra of its own.

Nothing is imported here, and nothing else of Limpet imports an adapter. bridge.py is what they have in common.
"""
