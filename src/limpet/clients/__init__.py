"""Coding agents: what each one's configuration needs so that Limpet is there, one file a client.

A client's file says which of its files are edited and how, as plain values. `plan` turns that into texts before and
after without touching anything, and `apply` writes them, so that a dry run shows exactly what an installation does.
"""
