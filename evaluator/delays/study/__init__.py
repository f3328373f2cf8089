"""What `evaluate delays` adds to the delays that a replay needs: families of laws, tests, windows, the joint rate."""
