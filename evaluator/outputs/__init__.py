"""What the package writes: whole or not at all, over nothing that is not its own."""
