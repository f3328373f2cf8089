"""Twins: worlds fitted to a log, the logs drawn from them, and what is claimed of and lived in them."""
