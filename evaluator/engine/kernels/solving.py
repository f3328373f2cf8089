"""The one place where equations are solved: none is singular, whatever the columns of a log and their units.

Columns are put on one scale before a model is fitted to them. Sums of squares of columns that hang together have no
inverse, or one of rounding errors alone: the solution is then the least-norm one, in the columns' own spreads, which
gives the same predictions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Of a matrix with a diagonal of 1, an eigenvalue that is no more is rounding: three of sixteen digits are left.
_NONE = 1e-13
# A column that varies by less of its mean is constant: float32 tells 7 digits.
_FLAT = 1e-9


class Standard(NamedTuple):
    """Means and standard deviations of columns, shape (d,); the deviation of a constant one is infinite."""

    centre: Floats
    deviation: Floats

    def of(self, x: npt.NDArray[np.floating]) -> Floats:
        """Return columns, shape (n, d), with mean 0 and variance 1; 0 where constant."""
        return np.asarray((x - self.centre) / self.deviation, np.float64)

    def with_constant(self, x: npt.NDArray[np.floating]) -> Floats:
        """Return such columns and a constant, shape (n, d + 1)."""
        return np.column_stack([self.of(x), np.ones(len(x))])


def standard_of(x: npt.NDArray[np.floating]) -> Standard:
    """Return the means and deviations of the columns of x, shape (n, d), n > 0."""
    centre = x.mean(axis=0, dtype=np.float64)
    return Standard(centre, varying(x.std(axis=0, dtype=np.float64), centre))


def varying(deviation: Floats, centre: Floats) -> Floats:
    """Return the deviations, infinite where a column is constant but for rounding."""
    return np.where(deviation > _FLAT * np.abs(centre), deviation, np.inf)


def solved(matrix: Floats, right: Floats) -> Floats:
    """Return x with matrix x = right, of least norm where there are several or none.

    Parameters
    ----------
    matrix
        Symmetric matrices without negative eigenvalues, such as sums of squares, shape (..., d, d).
    right
        Right-hand sides, shape (..., d).
    """
    equal, scale = _with_equal_diagonal(matrix)
    right = (right / scale)[..., None]
    found = np.linalg.solve(equal, right) if _is_regular(equal) else _pseudo_inverse(equal) @ right
    return np.asarray(found[..., 0] / scale)


def inverted(matrix: Floats) -> Floats:
    """Return the inverse of such a matrix, or the pseudo-inverse in its columns' own spreads."""
    equal, scale = _with_equal_diagonal(matrix)
    inverse = np.linalg.inv(equal) if _is_regular(equal) else _pseudo_inverse(equal)
    return np.asarray(inverse / (scale[..., :, None] * scale[..., None, :]))


def squared_length(vector: Floats, covariance: Floats, *, rounding: float = 1e-9) -> tuple[float, int]:
    """Return vector' covariance^-1 vector, chi-square if the vector's mean is 0, and its degrees of freedom.

    All numbers are of one unit: directions with less than a share `rounding` of the largest variance are none.
    """
    variance, axes = np.linalg.eigh(covariance)
    there = variance > rounding * max(float(variance.max(initial=0.0)), 1e-300)
    along = axes[:, there].T @ vector
    return float((along**2 / variance[there]).sum()), int(there.sum())


def _with_equal_diagonal(matrix: Floats) -> tuple[Floats, Floats]:
    """Return matrices with a diagonal of 1, or 0 where they have 0, and the scale of each column, shape (..., d)."""
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    # One after the other: the product of two scales may be beyond the largest number.
    return matrix / scale[..., :, None] / scale[..., None, :], scale


def _is_regular(equal: Floats) -> bool:
    try:
        left = np.diagonal(np.linalg.cholesky(equal), axis1=-2, axis2=-1)
    except np.linalg.LinAlgError:
        return False
    return bool((left**2 > _NONE).all())


def _pseudo_inverse(equal: Floats) -> Floats:
    return np.asarray(np.linalg.pinv(equal, rcond=_NONE, hermitian=True))
