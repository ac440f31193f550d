"""What to send, warn about, clear or compact: pure decisions over messages."""
