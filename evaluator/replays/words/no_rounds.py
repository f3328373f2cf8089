"""A replay without a single round: which action is to blame, and what works instead."""

from __future__ import annotations

import numpy as np

from evaluator.errors import NoRoundsError
from evaluator.replays.loop.engine import Replay
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rarest import binding_display, leaves_out

# So many rounds are not missed by chance: the probability is exp(-20) at most.
_EXPECTED = 20.0
_LONGER = "take a longer log, or fewer actions: `actions='top:n'`."


def no_rounds(plan: ReplayPlan, replay: Replay) -> NoRoundsError:
    """Return the error of a replay that accepted no display."""
    chosen = replay.dry if plan.sampler == "queue" else replay.waiting
    usable = plan.usable
    n = len(plan.rounds)
    out = leaves_out(plan.survey, usable, parted=plan.parted)
    said = f"{plan.policy.spec} lived no round of the {n:,} displays (sampler: {plan.sampler})"
    if chosen >= 0 and not usable[chosen]:
        why = "was never shown" if not plan.survey.shown[chosen] else "has young displays only, too young to be judged"
        hint = (
            f"take an action that has usable displays: fixed:action={int(usable.argmax())}."
            if plan.policy.name == "fixed"
            else f"leave it out: {out}."
        )
        return NoRoundsError(f"{said}: it chose action {plan.log.labels[chosen]}, which {why}.", hint=hint)
    if plan.matched.propensities.rule is None:
        return NoRoundsError(f"{said}.", hint=_LONGER)
    smallest = plan.matched.propensities.smallest
    blamed = chosen if chosen >= 0 and plan.sampler != "rejection" else int(np.nanargmin(smallest))
    if binding := binding_display(plan):
        keep = plan.sampler == "rejection" and not plan.per_display
        other = "`sampler='keep'`, whose rounds no action decides that is not chosen, or " if keep else ""
        return NoRoundsError(f"{said}: {binding.cause}.", hint=f"what helps is {other}{binding.remedy}.")
    c = min(float(plan.matched.c[blamed]), 1.0)
    if c * n >= _EXPECTED:
        none = [plan.log.labels[k] for k in np.flatnonzero(usable == 0)]
        why = f"; action {', '.join(none)} has no usable display" if none else ""
        return NoRoundsError(
            f"{said}, where about {c * n:,.0f} were to be accepted: none shows what it chose{why}.",
            hint=f"leave it out: {out}." if none else "run evaluate check on this log.",
        )
    least = float(np.nanmin(smallest))
    if least > 0.5 * float(np.nanmedian(smallest)):
        return NoRoundsError(f"{said}, of which about {c * n:,.2g} were to be accepted.", hint=_LONGER)
    return NoRoundsError(
        f"{said}: the smallest propensity of action {plan.log.labels[blamed]}, {float(smallest[blamed]):.2g}, leaves "
        f"about {c * n:,.2g} of them.",
        hint=_way_out(plan, least),
    )


def _way_out(plan: ReplayPlan, least: float) -> str:
    if plan.sampler == "rejection" and not plan.per_display:
        return "use `sampler='keep'`, whose rounds no other action's propensity decides."
    for quantile in (0.01, 0.05, 0.2, 0.5):
        c = plan.propensities.quantile(plan.log, quantile)
        if c * len(plan.rounds) >= _EXPECTED and c > least:
            return (
                f"accept by a larger c, at the price of bias: `accept_quantile={quantile:g}` makes it {c:.2g}; or "
                "leave that action out by `actions`."
            )
    return _LONGER
