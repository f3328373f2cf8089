"""Slow twins of the policies, straight from the papers' formulas, sharing no code with the kernels."""

from __future__ import annotations

from tests.twins.delayed import DelayedKLUCBTwin, DelayedUCBTwin
from tests.twins.history import Twin
from tests.twins.linear import LinTSTwin, LinUCBTwin
from tests.twins.naive import KLUCBTwin, ThompsonTwin, UCB1Twin
from tests.twins.otf import OTFLinTSTwin, OTFLinUCBTwin
from tests.twins.static import FixedTwin, RandomTwin
from tests.twins.wait import WaitLinUCBTwin

TWINS: dict[str, type[Twin]] = {
    "random": RandomTwin,
    "fixed": FixedTwin,
    "ucb1": UCB1Twin,
    "klucb": KLUCBTwin,
    "thompson": ThompsonTwin,
    "delayed-ucb": DelayedUCBTwin,
    "delayed-klucb": DelayedKLUCBTwin,
    "linucb": LinUCBTwin,
    "lints": LinTSTwin,
    "waitlinucb": WaitLinUCBTwin,
    "otflinucb": OTFLinUCBTwin,
    "otflints": OTFLinTSTwin,
}
