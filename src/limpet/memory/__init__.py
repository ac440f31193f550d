"""What a project keeps: notes, keyed memory, handoffs, state and skills."""
