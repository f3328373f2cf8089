"""From the rounds a policy lived to numbers with intervals."""

from evaluator.estimates.confidence import Interval, mean_interval, mean_sequence

__all__ = ["Interval", "mean_interval", "mean_sequence"]
