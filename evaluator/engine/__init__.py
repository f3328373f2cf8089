"""Loops that run every policy: where the next display comes from, what is pending, and kernels they are made of."""
