"""What numbers rest on: displays read, those accepted, and how many independent ones they are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from evaluator.replays.result import ReplayResult
from evaluator.report.delay_charts import CORRECTED, GREY, NAIVE, Spec, finished
from evaluator.report.interval_charts import line_name

_WIDTH, _ROW, _MOST = 460, 24, 24
Row = dict[str, Any]


def acceptance_chart(results: Sequence[ReplayResult]) -> Spec | None:
    """Return what was read and accepted in each line, and its effective sample size; None of no rounds, or too many.

    Of a single replay, the displays are shown too that value its final policy, with what their weights leave of them.
    """
    rows = [_row(line_name(of, i) if len(results) > 1 else "rounds", of) for i, of in enumerate(results) if of.rounds]
    if not 0 < len(rows) <= _MOST:
        return None
    final = results[0].final
    if len(results) == 1 and final is not None:
        worth, n = final.weights.effective_sample_size, final.weights.n
        said = f"{n:,} weighed, worth {worth:,.0f}"
        told = (
            f"final policy: valued on {n:,} displays, which its weights leave an effective sample size of {worth:,.0f}"
        )
        rows.append({"of": "final policy", "read": n, "accepted": 0, "worth": worth, "said": said, "told": told})
    x = alt.X("read:Q", axis=alt.Axis(title="displays", format=",d", tickCount=5), scale=alt.Scale(zero=True))
    y = alt.Y("of:N", sort=[row["of"] for row in rows], axis=alt.Axis(title=None, labelLimit=0))
    base = alt.Chart(alt.InlineData(rows)).encode(y=y)
    chart = alt.layer(
        base.mark_bar(color=GREY, opacity=0.45, height=14).encode(x=x, description="told:N"),
        base.mark_bar(color=CORRECTED, height=14).encode(x="accepted:Q"),
        base.mark_point(color=NAIVE, shape="diamond", filled=True, size=90, opacity=1).encode(x="worth:Q"),
        base.mark_text(align="left", fontSize=11).encode(x=alt.value(_WIDTH + 8), text="said:N"),
    )
    said = "grey: displays read; blue: accepted, a round each; diamond: effective sample size"
    return finished(chart, "What the numbers rest on", said, height=_ROW * len(rows), width=_WIDTH)


def _row(name: str, of: ReplayResult) -> Row:
    """Return the displays of a line; of repeats, the mean over them."""
    accepted = of.trajectory.num_rows / int(of.plan["options"]["repeats"])
    read = accepted / of.acceptance_rate
    worth = of.effective_sample_size
    said = f"{accepted:,.0f} of {read:,.0f} ({of.acceptance_rate:.1%}), worth {worth:,.0f}"
    expected = "" if math.isnan(of.acceptance_expected) else f"; {of.acceptance_expected:.1%} were to be expected"
    told = f"{name}: {accepted:,.0f} of {read:,.0f} displays read were accepted ({of.acceptance_rate:.1%}){expected}"
    return {"of": name, "read": read, "accepted": accepted, "worth": worth, "said": said, "told": told}
