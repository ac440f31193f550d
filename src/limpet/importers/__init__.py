"""What other memory tools keep, read: one reader a tool (server_memory, anthropic_memory, mem0, basic_memory) over one
shape, and reading.py, which opens their files and folders with care.
"""
