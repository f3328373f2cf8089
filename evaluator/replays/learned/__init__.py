"""What a replay has learned, as a policy that decides, and as a file."""
