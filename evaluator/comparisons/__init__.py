"""Several policies and windows on one log: their differences, their ranking, their curves."""
