"""From a log to the rounds a replay reads: clock, propensities, maturity, arrays."""
