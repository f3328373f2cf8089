"""Policies and parameters that the tests replay: every branch of every policy, ties to the lowest index.

A policy that no group names is replayed with its defaults and with every other choice of its parameters.
"""

from __future__ import annotations

import dataclasses
import typing

import numpy as np

from evaluator.delays.cdf import DelayCDF
from evaluator.policies import names, resolve
from evaluator.policies.base import NO_WINDOW
from evaluator.policies.registry import POLICIES
from tests.policies.rounds import Layout

INDEX = (
    "random",
    "fixed:action=2",
    "ucb1:ties=lowest",
    "ucb1:exploration=0.3,ties=lowest",
    "klucb:ties=lowest",
    "klucb:c=3,ties=lowest",
    "thompson",
    "thompson:successes=0.5,failures=2",
)
DELAYED = (
    "delayed-ucb:ties=lowest",
    "delayed-ucb:epsilon=0.5,ties=lowest",
    "delayed-klucb:ties=lowest",
    "delayed-klucb:epsilon=0.5,ties=lowest",
    "delayed-ucb:model=uncensored,ties=lowest",
    "delayed-klucb:model=uncensored,ties=lowest",
)
ONLINE = (
    "delayed-ucb:cdf=online,ties=lowest",
    "delayed-klucb:cdf=online,epsilon=0.5,ties=lowest",
    "delayed-ucb:cdf=online,model=uncensored,gamma=0.5,ties=lowest",
    "delayed-klucb:cdf=online,model=uncensored,ties=lowest",
)
DISCARDING = (
    "discarding-ucb:epsilon=0.5,ties=lowest",
    "discarding-klucb:ties=lowest",
    "discarding-ucb:cdf=online,ties=lowest",
    "discarding-klucb:cdf=online,epsilon=0.5,ties=lowest",
)
DELAYED_DRAWS = ("delayed-thompson", "delayed-thompson:successes=0.5,failures=2")
QUEUED = ("qpm-d:ties=lowest", "qpm-d:base=klucb,ties=lowest")
# Widths for T rounds would hide the means for all of a short test.
PATIENT = (
    "patient-bandits:ties=lowest",
    "patient-bandits:alpha=0.3,width_scale=0.1,ties=lowest",
    "patient-bandits:width_scale=0.1,bias_scale=0,ties=lowest",
    "adapt-patient-bandits:ties=lowest",
    # d is about a fifth of D, where it is 0 with the defaults.
    "adapt-patient-bandits:c=1,mu_min=1,alpha_min=0.45,width_scale=0.1,ties=lowest",
)
ANONYMOUS = ("odaaf", "odaaf-b", "odaaf-b:bridge=random", "odaaf-v:bridge=first")
LINEAR = ("linucb:alpha=0.5,ties=lowest", "linucb:alpha=0,ridge=0.2,ties=lowest", "lints", "lints:scale=0.2,ridge=3")
WINDOWED = (
    "otflinucb:ties=lowest",
    "otflinucb:alpha=0.1,delta=0.3,ridge=2,bonus=exact,ties=lowest",
    "otflinucb:alpha=0.1,width=theorem,ties=lowest",
    "otflinucb:alpha=0.05,ridge=0.5,width=theorem,bonus=exact,ties=lowest",
    "otflints",
    "otflints:sigma0=0.1,ridge=2,bonus=exact",
    "otflints:width=theorem,delta=0.3",
    "otflints:width=theorem,ridge=0.5,bonus=exact",
)
WAITING = ("waitlinucb:alpha=0.3,ties=lowest", "waitlinucb:alpha=0.1,ridge=2,width=theorem,ties=lowest")
ARRIVED = (
    "nonambiguous-linucb:alpha=0.3,ties=lowest",
    "nonambiguous-linucb:alpha=0.1,ridge=2,width=theorem,unconverted=censored,ties=lowest",
)
DIAGONAL = ("linucb:diagonal=true,alpha=0.5,ties=lowest", "lints:diagonal=true,scale=0.2,ridge=3")
# Learn by the same regressions, and are replayed among the proofs: each takes seconds to compile.
DIAGONAL_LATER = (
    "otflinucb:diagonal=true,alpha=0.1,width=theorem,ties=lowest",
    "otflints:diagonal=true,sigma0=0.1,bonus=exact",
    "waitlinucb:diagonal=true,alpha=0.3,ties=lowest",
    "nonambiguous-linucb:diagonal=true,alpha=0.3,ties=lowest",
)
GROUPS = (
    *INDEX,
    *DELAYED,
    *ONLINE,
    *DISCARDING,
    *DELAYED_DRAWS,
    *QUEUED,
    *ANONYMOUS,
    *PATIENT,
    *LINEAR,
    *WINDOWED,
    *WAITING,
    *ARRIVED,
)


def choices(name: str) -> tuple[str, ...]:
    """Return the policy with its defaults, and with each other choice of a parameter that has choices."""
    policy = resolve(name)
    if "ties" in policy.parameters:
        policy = dataclasses.replace(policy, ties="lowest")
    hints = typing.get_type_hints(type(policy))
    changed = [
        dataclasses.replace(policy, **{parameter: choice}).spec
        for parameter, value in policy.parameters.items()
        if parameter != "ties" and typing.get_origin(hints[parameter]) is typing.Literal
        for choice in typing.get_args(hints[parameter])
        if choice != value
    ]
    return policy.spec, *changed


# The logging policy follows its log: there is nothing to choose.
REST = tuple(
    spec
    for name in POLICIES
    if name not in {resolve(spec).name for spec in GROUPS} | {"logging"}
    for spec in choices(name)
)
ALL = (*GROUPS, *REST)

# Policies that are played against a known truth, by name or with parameters that choose another algorithm, or whose
# defaults explore for longer than a test can wait. The logging policy and the fixed ones have nothing to choose.
PLAYED = (
    *(name for name in names() if name not in ("logging", "fixed", "columns", "target")),
    "delayed-ucb:model=uncensored",
    "delayed-ucb:cdf=online",
    "delayed-ucb:model=uncensored,cdf=online",
    "delayed-klucb:model=uncensored",
    "delayed-klucb:cdf=online",
    "discarding-ucb:cdf=online",
    "discarding-klucb:cdf=online",
    "qpm-d:base=klucb",
    "patient-bandits:width_scale=0.1",
    "adapt-patient-bandits:c=1,mu_min=1,alpha_min=0.45,width_scale=0.1",
    "odaaf-b:bridge=random",
    "nonambiguous-linucb:unconverted=censored",
    "otflinucb:bonus=exact",
)

LAYOUTS: tuple[Layout, ...] = ("sets", "contexts", "catalogue")
# Nothing is ever missing; finite; as long as the log; longer; none.
WINDOWS = (0, 1, 15, 500, 10_000, NO_WINDOW)
# Weights of the step CDFs are multiples of 1/8: sums of them are exact, and so are ties between arms.
CDFS = {
    "geometric from 0": DelayCDF.geometric(12.0),
    "geometric from 1": DelayCDF.geometric(12.0, start=1),
    "steps": DelayCDF(delays=np.array([0, 3, 4, 20]), cdf=np.array([0.125, 0.25, 0.5, 0.875]), source="test"),
    "late steps": DelayCDF(delays=np.array([9, 30]), cdf=np.array([0.5, 1.0]), source="test"),
}
