"""What hooks do: one module per action, each with a function `run(hook)`. `triage` chooses the action for an event."""
