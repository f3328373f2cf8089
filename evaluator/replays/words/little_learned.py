"""Whether a policy was told enough to learn from, and what would help if not."""

from __future__ import annotations

import numpy as np

from evaluator.findings.codes import LITTLE_LEARNED
from evaluator.findings.finding import Finding
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rarest import binding_display

# With fewer conversions told per action its rate is known to a third at best, and what a policy does is exploration.
FEW_TOLD = 10
_SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


def little_learned(
    plan: ReplayPlan, *, rounds: int, generated: float, delivered: float, expired: float
) -> list[Finding]:
    """Return a warning of a policy that was told of few conversions, and what would help; none if it was told enough.

    Parameters
    ----------
    plan
        Plan of the replay.
    rounds
        Number of rounds T of the replay.
    generated, delivered, expired
        Numbers of conversions of the accepted displays, mean over repeats: all, revealed, and later than the window.
    """
    enough = FEW_TOLD * plan.log.n_actions
    if not plan.policy.learns or not rounds or delivered >= enough:
        return []
    late = max(generated - delivered - expired, 0.0)
    what = "Nothing was learned" if not delivered else "Hardly anything was learned"
    others = [
        f"{n:,.0f} come {when}" for n, when in ((expired, "after the window"), (late, "after the last round")) if n
    ]
    so = (
        f"{what}: of the {generated:,.0f} conversions of its {rounds:,} rounds the policy was told {delivered:,.0f}"
        f"{''.join(f', {of}' for of in others)}."
    )
    if expired > 0.5 * generated:
        return [LITTLE_LEARNED.found(so, "What helps: a wider `window`.", told=delivered, rounds=rounds)]
    if binding_display(plan):
        return []  # the plan's own warning names the cause
    helps = []
    if late > 0.5 * generated:
        share = _helpful_share(plan, rounds, generated, enough)
        if share is not None:
            now, then = rounds / plan.clock.share, rounds / share
            helps.append(
                "a smaller share of the traffic, if the rollout may take so long: "
                f"`traffic_share={share:g}` (about {_told(plan, rounds, generated, share):,.0f} told, in {then:,.0f} "
                f"displays of live traffic instead of {now:,.0f})"
            )
    # With two actions half the displays would be rounds; on the wall clock delays would grow as the rounds do.
    most = max(len(plan.rounds) // 2, rounds)
    of_most = _told(plan, most, generated * most / rounds, plan.clock.share)
    if plan.log.n_actions > 2 and plan.clock.kind != "wall" and of_most >= FEW_TOLD * 2:
        helps.append("fewer actions (`actions='top:n'`)")
    remedy = f"What helps: {', or '.join([*helps, 'a longer log'])}."
    return [LITTLE_LEARNED.found(so, remedy, told=delivered, rounds=rounds)]


def _helpful_share(plan: ReplayPlan, rounds: int, generated: float, enough: int) -> float | None:
    """Return the largest share of the traffic at which enough conversions would be told; None if there is none."""
    if plan.clock.kind == "wall":
        return None
    smaller = (s for s in _SHARES if s < plan.clock.share)
    return next((s for s in smaller if _told(plan, rounds, generated, s) >= enough), None)


def _told(plan: ReplayPlan, rounds: int, generated: float, share: float) -> float:
    """Return about how many of a replay's conversions would be told at another share of the traffic.

    Of a conversion with a delay of d rounds the share (T - d) / T of the rounds is told by the last one. At a share s
    the delays are s times as long in rounds; a window that is a duration cuts the same conversions.
    """
    used = int(np.searchsorted(plan.survey.display, len(plan.rounds)))
    delay = plan.rounds.delay[:used].astype(np.float64)
    if not len(delay):
        return 0.0
    then = delay * (share / plan.clock.share)
    within = (then if str(plan.options.window).isdecimal() else delay) <= plan.window.rounds
    return generated * float(np.mean(np.maximum(1.0 - then / rounds, 0.0) * within))
