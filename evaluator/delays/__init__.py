"""How long conversions take: delay distributions and their estimates from logs that stop looking."""

from evaluator.delays.cdf import DelayCDF, Steps
from evaluator.delays.product_limit import product_limit

__all__ = ["DelayCDF", "Steps", "product_limit"]
