"""The replay: logged rounds go in, the rounds a policy would have lived come out."""

from evaluator.replayer.engine import Replay, begin, run
from evaluator.replayer.samplers import SamplerName, choose_sampler

__all__ = ["Replay", "SamplerName", "begin", "choose_sampler", "run"]
