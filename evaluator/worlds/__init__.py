"""Worlds: what displays and events are drawn from, where the truth is known."""
