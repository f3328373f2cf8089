"""Where the bundled dataset specs are."""

from __future__ import annotations

from pathlib import Path


def bundled_folder() -> Path:
    """Return ``_bundled`` in an installed wheel, the top-level ``datasets`` folder in a checkout."""
    here = Path(__file__).parent
    bundled = here / "_bundled"
    return bundled if bundled.is_dir() else here.parents[1] / "datasets"
