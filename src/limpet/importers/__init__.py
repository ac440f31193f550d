"""Importing from other programs.

`memory_tools` reads the files of other memory tools, and `facts` adds what it finds to memory. `transcripts` reads the
sessions of coding agents, and `conversations` adds their messages to a session.
"""
