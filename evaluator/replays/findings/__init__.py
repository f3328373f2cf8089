"""What a replay says: what its numbers mean, what they rest on, and what to know before them, in sentences."""
