"""Scenarios: the parameters of made-up worlds, as a spec states them, and the logs drawn from them."""
