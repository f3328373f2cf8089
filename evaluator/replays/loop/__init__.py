"""The replay: logged rounds go in, the rounds a policy would have lived come out."""

from evaluator.replays.loop.engine import Replay, begin, run
from evaluator.replays.loop.samplers import SamplerName, choose_sampler

__all__ = ["Replay", "SamplerName", "begin", "choose_sampler", "run"]
