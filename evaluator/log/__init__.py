"""The log contract: displays, conversions, actions and metadata as Arrow tables."""

from evaluator.log.breaches import Breach, find_breaches
from evaluator.log.contract import Log, LogMeta, PropensityKind
from evaluator.log.stored import Selection, StoredLog

__all__ = ["Breach", "Log", "LogMeta", "PropensityKind", "Selection", "StoredLog", "find_breaches"]
