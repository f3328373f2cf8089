"""The pictures of README and docs, drawn from numbers that commands of this folder print.

``python -m tests.bench.clocks --svg docs/pictures/clocks.svg`` measures and draws the first; ``python -m
tests.bench.pictures`` draws the second, of the table of speeds in docs/why/speed.md, whose lines name their commands;
``python -m tests.bench.cadences --svg docs/pictures/cadences.svg`` measures and draws the third.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

DOCS = Path(__file__).parents[2] / "docs"
SPEEDS = DOCS / "why" / "speed.md"
INK, OURS, OTHERS = "#222222", "#0b7a75", "#c8553d"
Line = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]  # rounds and regret


def draw_clocks(lines: dict[str, Line], subtitle: str, file: Path) -> None:
    """Draw regret live, replayed on the traffic clock and on the log's own, each named at its end."""
    import altair as alt
    import polars as pl

    points: list[dict[str, Any]] = []
    ends: list[tuple[int, float]] = []
    for name, (rounds, regret) in lines.items():
        at = np.unique(np.linspace(0, len(rounds) - 1, 121).astype(int))
        points += [{"rounds": int(rounds[i]), "regret": float(regret[i]), "run": name} for i in at]
        ends.append((int(rounds[-1]), float(regret[-1])))
    horizon = ends[0][0]
    notes = (
        (ends[0], f"live: {ends[0][1]:.0f}", -11, INK),
        (ends[1], f"replay, traffic clock: {ends[1][1]:.0f}", 9, OURS),
        (ends[2], f"replay, the log's own clock: {ends[2][1]:.0f}", -9, OTHERS),
        (ends[2], f"looks {1 - ends[2][1] / ends[0][1]:.0%} too good", 9, OTHERS),
    )
    names = list(lines)
    colours = alt.Scale(domain=names, range=[INK, OURS, OTHERS])
    dashes = alt.Scale(domain=names, range=[[1, 0], [7, 5], [1, 0]])
    every = alt.Axis(values=list(range(0, horizon + 1, 500)), format=",d")
    drawn = (
        alt.Chart(pl.DataFrame(points))
        .mark_line(strokeWidth=3)
        .encode(
            x=alt.X("rounds:Q", title="rounds", axis=every),
            y=alt.Y("regret:Q", title="regret: conversions lost so far"),
            color=alt.Color("run:N", scale=colours, legend=None),
            strokeDash=alt.StrokeDash("run:N", scale=dashes, legend=None),
        )
    )
    words = [
        alt.Chart(pl.DataFrame([{"rounds": x, "regret": y}]))
        .mark_text(align="left", dx=8, dy=dy, fontSize=13, fontWeight="bold", color=colour, text=text)
        .encode(x="rounds:Q", y="regret:Q")
        for (x, y), text, dy, colour in notes
    ]
    title = "One policy, the same traffic, and two ways to replay it"
    _save(alt.layer(drawn, *words), title, subtitle, file, width=470, height=270)


class Cadence(NamedTuple):
    """Regret of a policy that learns every so many rounds, and its standard error."""

    every: int
    regret: float
    error: float


def draw_cadences(lines: dict[str, list[Cadence]], subtitle: str, file: Path) -> None:
    """Draw the regret of each policy by the rounds between two pushes, two standard errors each way."""
    import altair as alt
    import polars as pl

    words = {1: "each event"}
    named = {of.every: words.get(of.every, f"{of.every:,}") for line in lines.values() for of in line}
    points = [
        {"policy": name, "every": named[of.every], "regret": of.regret, "low": of.regret - 2 * of.error,
         "high": of.regret + 2 * of.error}
        for name, line in lines.items() for of in line
    ]  # fmt: skip
    axis = alt.Axis(labelAngle=0, grid=False)
    x = alt.X("every:O", sort=list(named.values()), title="rounds from one push to the next", axis=axis)
    colours = dict(zip(lines, (OTHERS, "#8a6d1d", "#3d5a98", OURS), strict=True))
    colour = alt.Color("policy:N", scale=alt.Scale(domain=list(lines), range=list(colours.values())), legend=None)
    title = "regret after the last round"
    regret = alt.Y("regret:Q", title=title)
    base = alt.Chart(pl.DataFrame(points)).encode(x=x, color=colour)
    drawn = [
        base.mark_line(strokeWidth=3).encode(y=regret),
        base.mark_point(filled=True, size=60, opacity=1).encode(y=regret),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
    ]
    # The lowest name goes a little down, so that it lies on no other.
    lowest = min(lines, key=lambda name: lines[name][-1].regret)
    ends = [
        alt.Chart(pl.DataFrame([{"every": named[line[-1].every], "regret": line[-1].regret}]))
        .mark_text(align="left", dx=10, dy=8 if name == lowest else 0, fontSize=13, fontWeight="bold",
                   color=colours[name], text=f"{name}: {line[0].regret:.0f} to {line[-1].regret:.0f}")
        .encode(x=x, y=regret)
        for name, line in lines.items()
    ]  # fmt: skip
    _save(alt.layer(*drawn, *ends), "What learning later costs, and whom", subtitle, file, width=430, height=290)


def speeds() -> list[tuple[str, float, bool]]:
    """Return what the page's first table says: who, million displays a second, whether it is ours."""
    found = []
    for line in SPEEDS.read_text(encoding="utf-8").split("\n\n|")[1].splitlines()[2:]:
        who, fast, _ = (cell.strip() for cell in line.strip("|").split("|"))
        numbers = [float(x) for x in re.findall(r"([\d.]+) million", fast)]
        if "`linucb`" in who or "`otflinucb`" in who:
            found += [(f"{re.findall('`(.*?)`', who)[0]}, this package", numbers[0], True)]
        elif "C loop" in who:
            best = "the best C loop that we know" if "best" in who else "a plain C loop"
            found += [(f"LinUCB, {best}", numbers[0], False)]
        elif not who.startswith("`"):
            names = re.sub(r"`|,? (8 displays|from its).*", "", who)
            parts = names.split(", ") if len(numbers) > 1 else [names]
            found += [(part, number, False) for part, number in zip(parts, numbers, strict=True)]
    return found


def draw_speeds(file: Path) -> None:
    """Draw the speeds of linear bandits, on a logarithmic scale."""
    import altair as alt
    import polars as pl

    rows = [{"who": who, "fast": fast * 1e6, "ours": ours, "from": 1e3} for who, fast, ours in speeds()]
    base = alt.Chart(pl.DataFrame(rows))
    who = alt.Y("who:N", sort=[row["who"] for row in rows], title=None, axis=alt.Axis(ticks=False, labelLimit=260))
    scale = alt.Scale(type="log", domain=[1e3, 1e8])
    axis = alt.Axis(values=[1e3, 1e4, 1e5, 1e6, 1e7, 1e8], format="~s", grid=True)
    fast = alt.X("fast:Q", scale=scale, title="logged displays a second, one core (logarithmic)", axis=axis)
    colour = alt.condition("datum.ours", alt.value(OURS), alt.value("#888888"))
    stems = base.mark_rule(strokeWidth=2).encode(x=fast, x2="from:Q", y=who, color=colour)
    heads = base.mark_point(filled=True, size=110, opacity=1).encode(x=fast, y=who, color=colour)
    words = base.mark_text(align="left", dx=9, fontSize=12, color=INK).encode(x=fast, y=who, text=alt.Text("label:N"))
    words = words.transform_calculate(label="format(datum.fast, ',d')")
    title, subtitle = "Replaying a linear bandit", "1,000,000 displays in memory, K = 10, d = 5"
    _save(stems + heads + words, title, subtitle, file, width=470, height=215)


def _save(chart: Any, title: str, subtitle: str, file: Path, *, width: int, height: int) -> None:
    import altair as alt

    said = alt.TitleParams(
        title, subtitle=subtitle, anchor="start", fontSize=15, subtitleFontSize=12, subtitleColor="#555555", offset=12
    )
    chart = (
        chart.properties(width=width, height=height, title=said, background="white", padding=12)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", gridColor="#eeeeee")
        .configure(font="Helvetica, Arial, sans-serif")
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    chart.save(str(file))


if __name__ == "__main__":
    draw_speeds(DOCS / "pictures" / "speed.svg")
