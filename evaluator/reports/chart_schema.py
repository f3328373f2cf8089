"""The schema of charts in files: rows of data, marks and axes in the forms that this package writes.

A Vega-Lite specification is a program: it fetches addresses, runs expressions and makes as many points as it likes. A
chart in a file may therefore hold only what this schema accepts: no address, no expression except the three that this
package writes, and bounded sizes, so that drawing takes a bounded time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from evaluator.escape import escape, shortened

# Most charts of a chapter, and most marks in all of them together.
MOST_CHARTS, MOST_MARKS = 1_000, 1_000_000

Text = Annotated[str, Field(max_length=2_000)]
Label = Annotated[str, Field(max_length=500)]
Name = Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
Number = Annotated[float, Field(ge=-1e300, le=1e300)]
Share = Annotated[float, Field(ge=0, le=1)]
Pixels = Annotated[float, Field(ge=0, le=100_000)]
# A colour or the name of a shape: neither an address nor a path.
_LOOK = r"^(#[0-9A-Fa-f]{6}|[a-z-]{1,20})$"
Look = Annotated[str, Field(pattern=_LOOK)]
Dash = Annotated[list[Annotated[float, Field(ge=0, le=20)]], Field(min_length=2, max_length=2)]
Format = Literal["", ",", ",d", "d", ".2~f", "%", ".1%", ".2%", "%Y-%m-%d"]
Title = Text | Annotated[list[Text], Field(max_length=20, fail_fast=True)] | None
Cell = Label | float | bool | None
Rows = Annotated[list[dict[Name, Cell]], Field(max_length=MOST_MARKS, fail_fast=True)]
_DURATION = r"abs\(datum\.value / [0-9.e+-]{1,30} - 1\) < 1e-6 \? '[0-9.]{1,10} [a-z]{1,5}' : "


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class _Guide(_Part):
    """The axis, the legend or the scale of a channel."""

    title: Title = None
    format: Format = ""
    type: Literal["log", "utc"] | None = None
    domain: Annotated[list[Label | Number], Field(max_length=100_000, fail_fast=True)] | None = None
    domain_min: Number = 0
    range: Annotated[list[Look | Dash], Field(max_length=100_000, fail_fast=True)] | None = None
    nice: bool = True
    zero: bool = True
    values: Annotated[list[Number], Field(max_length=1_000, fail_fast=True)] | None = None
    label_expr: Annotated[str, Field(pattern=rf"^({_DURATION}){{1,100}}''$")] | None = None
    label_angle: Annotated[float, Field(ge=-90, le=90)] = 0
    label_limit: Pixels = 0
    label_overlap: bool = True
    grid: bool = True
    tick_count: Annotated[int, Field(ge=0, le=100)] = 0
    tick_min_step: Annotated[float, Field(ge=1, le=1e300)] = 1
    title_align: Literal["left"] = "left"
    title_baseline: Literal["top"] = "top"
    title_limit: Pixels = 0
    title_x: Annotated[float, Field(ge=0, le=1_000)] = 0
    title_y: Annotated[float, Field(ge=0, le=1_000)] = 0
    orient: Literal["top", "right"] = "top"
    symbol_type: Literal["stroke"] = "stroke"
    symbol_opacity: Share = 1
    columns: Annotated[int, Field(ge=0, le=100)] = 0


class _Channel(_Part):
    field: Name | None = None
    type: Literal["quantitative", "nominal", "temporal"] | None = None
    value: Number = 0
    datum: Number = 0
    title: Title = None
    format: Format = ""
    axis: _Guide | None = None
    legend: _Guide | None = None
    scale: _Guide | None = None
    sort: Annotated[list[Label], Field(max_length=100_000, fail_fast=True)] | None = None
    stack: None = None

    @model_validator(mode="after")
    def _check_scale(self) -> _Channel:
        # Without a scale, values of the rows are used as they are. Only colours may be: they are checked below.
        if "scale" in self.model_fields_set and self.scale is None and self.field != "colour":
            raise ValueError("no scale")
        return self


class _Encoding(_Part):
    x: _Channel | None = None
    y: _Channel | None = None
    x2: _Channel | None = None
    y2: _Channel | None = None
    y_offset: _Channel | None = None
    color: _Channel | None = None
    fill: _Channel | None = None
    shape: _Channel | None = None
    opacity: _Channel | None = None
    stroke_dash: _Channel | None = None
    detail: _Channel | None = None
    text: _Channel | None = None
    description: _Channel | None = None
    tooltip: _Channel | Annotated[list[_Channel], Field(max_length=10)] | None = None


class _Mark(_Part):
    type: Literal["area", "bar", "line", "point", "rect", "rule", "text", "tick"]
    color: Look = "black"
    opacity: Share = 1
    filled: bool = True
    clip: bool = True
    shape: Look = "circle"
    size: Pixels = 0
    height: Pixels = 0
    thickness: Pixels = 0
    stroke_width: Pixels = 0
    stroke_dash: Dash | None = None
    interpolate: Literal["linear", "monotone", "step-after"] = "linear"
    point: bool | dict[Literal["size"], Pixels] = False
    bin_spacing: Pixels = 0
    align: Literal["left", "center", "right"] = "left"
    baseline: Literal["top", "middle", "bottom"] = "middle"
    dx: Annotated[float, Field(ge=-100, le=100)] = 0
    font_size: Annotated[float, Field(ge=1, le=100)] = 11


class _Named(_Part):
    name: Label


class _Values(_Part):
    values: Rows


class _Filter(_Part):
    filter: Annotated[str, Field(pattern=r"^isValid\(datum\.[a-z_]{1,40}\)$")]


class _Called(_Part):
    calculate: Annotated[str, Field(pattern=r"^'[^'\\\x00-\x1f\u2028\u2029]{0,200}'$")]
    name: Name = Field(alias="as")


class _Unit(_Part):
    """Marks of one kind on rows of data."""

    data: _Named | _Values | None = None
    transform: Annotated[list[_Filter | _Called], Field(max_length=4)] = []
    mark: _Mark | None = None
    encoding: _Encoding | None = None


class _Words(_Part):
    text: Title
    subtitle: Title = None
    anchor: Literal["start", "middle", "end"] = "start"
    offset: Pixels = 0
    font_size: Annotated[float, Field(ge=1, le=100)] = 11
    font_weight: Literal["normal", "bold"] = "normal"


class _Panel(_Unit):
    """Layers of marks on the same axes."""

    layer: Annotated[list[_Unit], Field(max_length=50, fail_fast=True)] = []
    title: _Words | Text | None = None
    width: Pixels = 0
    height: Pixels = 0

    @property
    def units(self) -> list[_Unit]:
        return [self, *self.layer]


class _Look(_Part):
    """How all axes of a chart look, or its plot."""

    grid_color: Look = "black"
    grid_opacity: Share = 1
    label_font_size: Annotated[float, Field(ge=1, le=100)] = 11
    title_font_size: Annotated[float, Field(ge=1, le=100)] = 11
    title_font_weight: Literal["normal", "bold"] = "normal"
    continuous_height: Pixels = 0
    continuous_width: Pixels = 0
    stroke_width: Pixels = 0


class _Chart(_Panel):
    """One panel, or several in a row or a column."""

    hconcat: Annotated[list[_Panel], Field(max_length=500, fail_fast=True)] = []
    vconcat: Annotated[list[_Panel], Field(max_length=500, fail_fast=True)] = []
    datasets: dict[Label, Rows] = {}
    config: dict[Literal["axis", "view"], _Look] = {}
    description: Text = ""
    padding: Pixels = 0
    autosize: dict[Literal["type", "contains"], Literal["fit", "padding"]] = {}
    version: Annotated[str, Field(alias="$schema", max_length=100, pattern=r"^https://vega\.github\.io/schema/")] = ""

    @model_validator(mode="after")
    def _check_colours(self) -> _Chart:
        outer = [unit.data.values for unit in self.units if isinstance(unit.data, _Values)]
        inner = [u.data.values for panel in self.panels for u in panel.units if isinstance(u.data, _Values)]
        colours = {
            row["colour"] for rows in (*outer, *inner, *self.datasets.values()) for row in rows if "colour" in row
        }
        if not all(re.fullmatch(_LOOK, str(colour)) for colour in colours):
            raise ValueError("no colour")
        return self

    @property
    def panels(self) -> list[_Panel]:
        return [*self.hconcat, *self.vconcat]

    @property
    def marks(self) -> int:
        """Number of marks drawn: each row counts once in every layer that draws it."""
        return sum(
            self._rows(unit.data or panel.data or self.data)
            for panel in self.panels or [self]
            for unit in panel.layer or [panel]
        )

    def _rows(self, data: _Named | _Values | None) -> int:
        if data is None:
            return 0
        return len(data.values if isinstance(data, _Values) else self.datasets.get(data.name, ()))


_CHARTS = TypeAdapter(Annotated[dict[Label, _Chart], Field(max_length=MOST_CHARTS)])


def check_charts(charts: Mapping[str, Any]) -> None:
    """Raise ValueError, which names the place, unless charts, given by name, follow the schema."""
    try:
        parsed = _CHARTS.validate_python(dict(charts))
    except ValidationError as error:
        raise ValueError(f"charts.{place_of(error)}") from None
    marks = sum(chart.marks for chart in parsed.values())
    if marks > MOST_MARKS:
        raise ValueError(f"charts ({marks:,} marks, and {MOST_MARKS:,} are drawn at most)")


def place_of(error: ValidationError) -> str:
    """Return the place of the first wrong value, as names and numbers joined by dots."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return shortened(escape(".".join(map(str, first["loc"]))), 120)
