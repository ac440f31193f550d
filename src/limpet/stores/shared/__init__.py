"""What both stores share."""
