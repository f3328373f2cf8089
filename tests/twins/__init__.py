"""Slow twins of the policies, straight from the papers' formulas, sharing no code with the kernels."""

from __future__ import annotations

from tests.twins.delayed import DelayedKLUCBTwin, DelayedUCBTwin, DiscardingKLUCBTwin, DiscardingUCBTwin
from tests.twins.elimination import ImprovedUCBTwin
from tests.twins.history import Twin
from tests.twins.linear import LinTSTwin, LinUCBTwin
from tests.twins.naive import KLUCBTwin, ThompsonTwin, UCB1Twin
from tests.twins.odaaf import ODAAFBTwin, ODAAFTwin, ODAAFVTwin
from tests.twins.otf import OTFLinTSTwin, OTFLinUCBTwin
from tests.twins.patient import AdaptPatientTwin, PatientTwin
from tests.twins.queues import QPMDTwin
from tests.twins.static import ColumnsTwin, FixedTwin, RandomTwin, TargetTwin
from tests.twins.thompson import DelayedThompsonTwin
from tests.twins.wait import NonambiguousLinUCBTwin, WaitLinUCBTwin

TWINS: dict[str, type[Twin]] = {
    "random": RandomTwin,
    "fixed": FixedTwin,
    "columns": ColumnsTwin,
    "target": TargetTwin,
    "ucb1": UCB1Twin,
    "klucb": KLUCBTwin,
    "thompson": ThompsonTwin,
    "delayed-ucb": DelayedUCBTwin,
    "delayed-klucb": DelayedKLUCBTwin,
    "discarding-ucb": DiscardingUCBTwin,
    "discarding-klucb": DiscardingKLUCBTwin,
    "delayed-thompson": DelayedThompsonTwin,
    "qpm-d": QPMDTwin,
    "improved-ucb": ImprovedUCBTwin,
    "odaaf": ODAAFTwin,
    "odaaf-b": ODAAFBTwin,
    "odaaf-v": ODAAFVTwin,
    "patient-bandits": PatientTwin,
    "adapt-patient-bandits": AdaptPatientTwin,
    "linucb": LinUCBTwin,
    "lints": LinTSTwin,
    "waitlinucb": WaitLinUCBTwin,
    "nonambiguous-linucb": NonambiguousLinUCBTwin,
    "otflinucb": OTFLinUCBTwin,
    "otflints": OTFLinTSTwin,
}


def twin_of(name: str) -> type[Twin]:
    """Return the slow twin of a policy.

    Raises
    ------
    LookupError
        It has none; the message says what to write.
    """
    if name not in TWINS:
        raise LookupError(
            f"tests/twins has no reference twin of {name!r}: write a subclass of tests.twins.history.Twin from the "
            f"paper's formula, and its line in TWINS of tests/twins/__init__.py."
        )
    return TWINS[name]
