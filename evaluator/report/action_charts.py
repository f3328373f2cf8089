"""What a policy showed as time went on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt
import numpy as np

from evaluator.replays.result import ReplayResult
from evaluator.report.delay_charts import GREY, LINES, Spec, drawable, finished

_PARTS = 25
_NAMED = 6
_OTHERS = "others"
_HEIGHT = 180


def action_chart(result: ReplayResult, name: str = "") -> Spec | None:
    """Return the share of each action in each part of the rounds; None of too few rounds, or of a single action.

    Parameters
    ----------
    result
        Result of a replay.
    name
        Name of it on pictures; empty for that of its policy.
    """
    played = np.flatnonzero(np.asarray(result.action_share) > 0)
    if result.rounds < _PARTS or len(played) < 2:
        return None
    action, number = (result.trajectory[name].to_numpy() for name in ("action", "round"))
    edges = np.linspace(0, int(number.max()), _PARTS + 1)
    part = np.clip(np.searchsorted(edges, number, side="left") - 1, 0, _PARTS - 1)
    counts = np.zeros((_PARTS, len(result.action_labels)))
    np.add.at(counts, (part, action), 1.0)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    # Those that matter at any time, not on average alone.
    order = played[np.argsort(-shares[:, played].max(axis=0), kind="stable")]
    named = order[:_NAMED] if len(order) > _NAMED + 1 else order
    names = [drawable(str(result.action_labels[i])) for i in named]
    columns = {name: shares[:, i] for name, i in zip(names, named, strict=True)}
    rest = np.setdiff1d(order, named)
    if len(rest):
        columns[_OTHERS] = shares[:, rest].sum(axis=1)
    tops = np.cumsum(list(columns.values()), axis=0)
    values: list[dict[str, Any]] = [
        {"from": float(edges[i]), "to": float(edges[i + 1]), "low": float(top[i] - share[i]), "high": float(top[i]),
         "of": name, "told": f"{name}: {share[i]:.1%} of rounds {edges[i] + 1:,.0f} to {edges[i + 1]:,.0f}"}
        for (name, share), top in zip(columns.items(), tops, strict=True)
        for i in range(_PARTS)
    ]  # fmt: skip
    colours = colours_of(named, len(result.action_labels), others=len(rest) > 0)
    of = alt.Color("of:N", title=None, sort=list(columns), scale=alt.Scale(domain=list(columns), range=colours),
                   legend=alt.Legend(orient="right", labelLimit=160))  # fmt: skip
    x = alt.X("from:Q", axis=alt.Axis(title="round", format=",d"), scale=alt.Scale(nice=False))
    y = alt.Y("low:Q", stack=None, axis=alt.Axis(title="share of rounds", format="%"), scale=alt.Scale(domain=[0, 1]))
    chart = (
        alt.Chart(alt.InlineData(values))
        .mark_rect(strokeWidth=0)
        .encode(x=x, x2="to:Q", y=y, y2="high:Q", color=of, description="told:N")
    )
    who = name or drawable(result.plan["policy"])
    return finished(chart, f"What {who} showed", "share of each action in each twenty-fifth of the rounds",
                    height=_HEIGHT)  # fmt: skip


def colours_of(actions: Iterable[int], n_actions: int, *, others: bool) -> list[str]:
    """Return a colour for each of these actions, and one for the others together where they are shown.

    Of few actions each has a colour of its own, the same in the charts of all policies and of their log.
    """
    few = n_actions <= len(LINES)
    own = [LINES[i if few else place] for place, i in enumerate(actions)]
    return [*own, *([GREY] if others else [])]
