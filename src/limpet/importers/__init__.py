"""Importing from other programs: one module per memory tool reads its files.

`files` opens the files of a tool, and `facts` adds what its reader finds to memory. `transcripts` reads the sessions of
coding agents, and `conversations` adds their messages to a session.
"""
