"""How results show themselves: printed, in a notebook, as a page, as a chart.

The report knows every result, so no result may know the report: the package itself, which knows both, brings them
together when a notebook asks for it. A script that only computes never loads what draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from altair import Chart


class ShownInNotebooks:
    """What a notebook shows as its report: the numbers that the terminal prints, and a picture where there is one."""

    __slots__ = ()
    # Set by `evaluator`, which is imported before any of its rooms.
    _as_text: ClassVar[Callable[[Any], str]]
    _as_html: ClassVar[Callable[[Any], str]]
    _as_page: ClassVar[Callable[[Any], str]]
    _as_chart: ClassVar[Callable[[Any, str | None], Any]]

    def __str__(self) -> str:
        return type(self)._as_text(self)

    def _repr_html_(self) -> str:
        return type(self)._as_html(self)

    def page(self) -> str:
        """Return a self-contained page of HTML: what a notebook shows, and every chart. It runs and asks for nothing.

        ``evaluate report`` makes one page of the folders of several results.
        """
        return type(self)._as_page(self)

    def chart(self, name: str | None = None) -> Chart:
        """Return a chart, to be shown in a notebook, changed, joined with others or saved.

        Parameters
        ----------
        name
            Name of the chart among those of the page; the most telling one by default.

        Raises
        ------
        UnknownNameError
            There is no chart of this name, or none at all; the message names those there are.
        """
        chart: Chart = type(self)._as_chart(self, name)
        return chart
