"""How results show themselves in a notebook.

The report knows every result, so no result may know the report: its rooms come first. This is the one way back, taken
when a notebook asks for it; a script that only computes never loads what draws.
"""

from __future__ import annotations


class ShownInNotebooks:
    """What a notebook shows as its report: the numbers that the terminal prints, and a picture where there is one."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from evaluator.report.notebook import as_html

        return as_html(self)
