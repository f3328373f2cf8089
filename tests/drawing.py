"""Charts drawn by one process for all tests of a worker: beginning one takes longer than what it draws."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from types import TracebackType
from typing import Self

from evaluator.reports import html

# What the package itself does.
own_process = html._answers
# Names of what cuts a curve off at the axes, which are numbered from the first picture of a process on.
_CLIP = re.compile(rb"\bclip[0-9]+\b")


class KeptDrawing:
    """The script that draws, begun once for each format; a picture is the same whatever was drawn before it.

    So a chart is drawn once: pages that are written, read back and written again have the same ones.
    """

    def __init__(self) -> None:
        self.begun: dict[str, subprocess.Popen[bytes]] = {}
        self.drawn: dict[tuple[str, bytes], bytes] = {}

    def __call__(self, charts: bytes, form: str, seconds: float) -> bytes:
        """Return what a process of its own answers, however long that takes."""
        answers: list[bytes] = []
        clips: dict[tuple[int, bytes], bytes] = {}

        def from_one(found: re.Match[bytes]) -> bytes:
            return clips.setdefault((len(answers), found[0]), b"clip%d" % (len(clips) + 1))

        for chart in charts.splitlines(keepends=True):
            answer = self.drawn.get((form, chart)) or self._draw(form, chart)
            if not answer:  # the chart ended the process
                self._end(form)
                break
            self.drawn[form, chart] = answer
            if form == "svg":
                answer = base64.b64encode(_CLIP.sub(from_one, base64.b64decode(answer))) + b"\n"
            answers.append(answer)
        return b"".join(answers)

    def _draw(self, form: str, chart: bytes) -> bytes:
        process = self._process(form)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(chart)
        process.stdin.flush()
        return process.stdout.readline()

    def _process(self, form: str) -> subprocess.Popen[bytes]:
        if form in self.begun and self.begun[form].poll() is not None:
            self._end(form)  # a test ended all that its process had begun
        if form not in self.begun:
            self.begun[form] = subprocess.Popen(
                [sys.executable, "-P", str(html._DRAW), form],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        return self.begun[form]

    def _end(self, form: str) -> None:
        with self.begun.pop(form) as process:
            process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for form in list(self.begun):
            self._end(form)
