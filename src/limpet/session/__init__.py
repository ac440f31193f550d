"""What a session has: notepad, tasks, pins, system prompt, and its place in the tree of sessions."""
