"""Linear policies, delay-naive: every regression solved densely, from all displays, at every round.

With the diagonal of V alone, each display and each conversion is a step of its own, in the order they are told in.

Disjoint arms (all see one context x) are the shared model with vectors e_k ⊗ x, of length K d.
"""

from __future__ import annotations

import numpy as np

from evaluator.engine.kernels.ridge import Ridge
from evaluator.policies.base import Setting
from tests.twins.history import Floats, Twin


class LinearTwin(Twin):
    """V = ridge I + Σ a a' over all displays, B = Σ value a over the conversions seen, theta^ = V⁻¹ B."""

    contextual = True
    # Whether the regression waits with a display, so that a diagonal one is told of it in another place.
    waits = False

    def __init__(self, setting: Setting, **parameters: object) -> None:
        super().__init__(setting, **parameters)
        self.dimension = setting.dimension * (setting.n_actions if setting.rows == 1 else 1)
        self.shown: list[Floats] = []
        self.precision = np.full(self.dimension, float(parameters["ridge"]))
        self.mean = np.zeros(self.dimension)

    def embed(self, vectors: Floats, action: int) -> Floats:
        if self.setting.rows == 1:
            return np.kron(np.eye(self.setting.n_actions)[action], vectors[0])
        return vectors[action].copy()

    def displayed(self, vectors: Floats, action: int) -> None:
        super().displayed(vectors, action)
        self.shown.append(self.embed(vectors, action))
        if not self.waits:
            self.enter(len(self.shown) - 1)

    def converted(self, vector: Floats, action: int, delay: int, value: float) -> None:
        super().converted(vector, action, delay, value)
        if not self.waits:
            self.credit(*self.conversions[-1])

    def enter(self, s: int) -> None:
        """Add display s: argmin over w of Σ q_i (w_i - mean_i)² + <w, x>², then q_i + x_i²."""
        x, q = self.shown[s], np.diag(self.precision)
        self.mean = np.linalg.solve(q + np.outer(x, x), q @ self.mean)
        self.precision = self.precision + x**2

    def credit(self, s: int, value: float) -> None:
        """Add a conversion of a display that has entered: what it would have added to the mean of that minimum."""
        x = self.shown[s]
        before = np.diag(self.precision - x**2)
        self.mean = self.mean + value * np.linalg.solve(before + np.outer(x, x), x)

    def gram(self) -> Floats:
        x = np.array(self.shown).reshape(-1, self.dimension)
        return self.parameters["ridge"] * np.eye(self.dimension) + x.T @ x

    def moment(self) -> Floats:
        return sum((value * self.shown[s] for s, value in self.conversions), np.zeros(self.dimension))

    def begin(self, rng: np.random.Generator) -> None:
        if self.parameters["diagonal"]:
            self.v, self.theta = np.diag(self.precision), self.mean
        else:
            self.v = self.gram()
            self.theta = np.linalg.solve(self.v, self.moment())

    def estimates(self, vectors: Floats) -> Floats:
        return self.candidates(vectors) @ self.theta

    def candidates(self, vectors: Floats) -> Floats:
        """Return each action's vector, shape (K, dimension)."""
        return np.array([self.embed(vectors, k) for k in range(self.setting.n_actions)])

    def squared_norms(self, vectors: Floats) -> Floats:
        """Return ||a||² in V⁻¹ of each row, shape (n,)."""
        return squared_norms(self.v, vectors)


class LinUCBTwin(LinearTwin):
    def scores(self, vectors: Floats) -> Floats:
        a = self.candidates(vectors)
        return a @ self.theta + self.parameters["alpha"] * np.sqrt(self.squared_norms(a))


class LinTSTwin(LinearTwin):
    def variance(self) -> float:
        return float(self.parameters["scale"]) ** 2

    def begin(self, rng: np.random.Generator) -> None:
        super().begin(rng)
        # V = L L', so L'⁻¹ z has the covariance V⁻¹.
        z = np.array([rng.standard_normal() for _ in range(self.dimension)])
        lower = np.linalg.cholesky(self.v)
        self.draw = self.theta + np.sqrt(self.variance()) * np.linalg.solve(lower.T, z)

    def scores(self, vectors: Floats) -> Floats:
        return self.candidates(vectors) @ self.draw


def squared_norms(v: Floats, vectors: Floats) -> Floats:
    """Return ||a||² in V⁻¹ of each row, shape (n,)."""
    return np.einsum("ij,ji->i", vectors, np.linalg.solve(v, vectors.T))


def inverse_of(ridge: Ridge) -> Floats:
    """Return V⁻¹ of each block, shape (blocks, d, d), which the state keeps as its factors."""
    upper = np.swapaxes(np.tril(ridge.factors, -1), 1, 2) + np.eye(ridge.factors.shape[1])
    diagonal = np.diagonal(ridge.factors, axis1=1, axis2=2)
    return (upper * diagonal[:, None, :]) @ np.swapaxes(upper, 1, 2)
