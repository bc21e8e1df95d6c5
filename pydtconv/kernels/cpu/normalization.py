"""Batch normalization (cext/nn/batchnorm.c)."""

from __future__ import annotations

from functools import partial

import numpy as np

from pydtconv._ext import norm
from pydtconv.conv.activations import CODES
from pydtconv.dtypes import real
from pydtconv.kernels.base import Call, Kernel, MeanTerms, Pass, nothing, sequence
from pydtconv.kernels.cpu.moments import moments_in
from pydtconv.kernels.cpu.rows import carve, carved_bytes, real_of, rows_of
from pydtconv.kernels.cpu.strided import bind_copy
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.base import Spec
from pydtconv.ops.normalization import FROM_INPUT, BatchNorm


@register(BatchNorm, dtypes=IMAGES)
class BatchNormKernel(Kernel[BatchNorm]):
    """Statistics, coefficients, application; backward in two passes, or one where its sums are given."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x = inputs[0]
        c = x.shape[-1] or 1
        vectors = carved_bytes(1 if direction == "forward" else 2, c, real(x.dtype))
        if direction == "forward" and self.op.exact:
            vectors += carved_bytes(2, c, "float64")
        return vectors + norm.batchnorm_workspace(x.size // c, c, x.dtype)

    def forward(self, p: Pass) -> Call:
        """Where p.y[0] is None, only what `saves` names is written: readers compute y by themselves."""
        x, y = rows_of(p.x[0]), rows_of(p.y[0])
        gamma = p.x[1] if self.op.scale else None
        moving_mean, moving_variance = (p.x[i] for i in self.op.state)
        mean, inverse, scale = p.saved["mean"], p.saved["inverse"], p.saved["scale"]
        assert p.workspace is not None
        state, synchronized = p.run, self.op.synchronized
        (variance,), rest = carve(p.workspace, 1, x.shape[1], real_of(x))
        apply = nothing if y is None else self._apply(p, x, y)
        if self.op.frozen or not (p.training or self.op.always):
            coefficients = norm.bind_coefficients(moving_variance, gamma, self.op.epsilon, inverse, scale)
            return sequence([bind_copy(moving_mean, mean), coefficients, apply])
        found, rows, round_ = [mean, variance], x.shape[0], nothing
        if self.op.exact:
            exact, rest = carve(rest, 2, x.shape[1], "float64")
            gather, round_ = norm.bind_exact_statistics(x, *exact, rest), partial(_round, exact, found)
            found = exact
        elif self.op.given:
            gather = sequence([bind_copy(*pair) for pair in zip(moments_in(p.x[-1]), found, strict=True)])
        else:
            gather = partial(norm.bind_statistics(x, mean, variance), rest)
        coefficients = norm.bind_coefficients(variance, gamma, self.op.epsilon, inverse, scale)
        move = norm.bind_moving(mean, variance, self.op.momentum, moving_mean, moving_variance)

        def train() -> None:
            gather()
            if synchronized and state.synchronizer is not None:
                state.synchronizer.moments(*found, rows)
            round_()
            coefficients()
            move()
            apply()

        return train

    def recompute(self, p: Pass) -> Call:
        """y once more, from the statistics that forward has saved; the moving ones stay as they are."""
        return self._apply(p, rows_of(p.x[0]), rows_of(p.y[0]))

    def _apply(self, p: Pass, x: np.ndarray, y: np.ndarray) -> Call:
        mean, scale, beta = p.saved["mean"], p.saved["scale"], self.op.beta_of(p.x)
        call: Call = norm.bind_apply(x, mean, scale, beta, CODES[self.op.activation], self.op.alpha, y)
        return call

    def backward(self, p: Pass) -> Call:
        if p.mean_terms is not None:
            return self._mean_terms(p, p.mean_terms)
        x, y, dy, dx = rows_of(p.x[0]), rows_of(p.y[0]), rows_of(p.dy[0]), rows_of(p.dx[0])
        mean, inverse, scale, beta = p.saved["mean"], p.saved["inverse"], p.saved["scale"], self.op.beta_of(p.x)
        assert p.workspace is not None
        sums, rest = carve(p.workspace, 2, x.shape[1], real_of(x))
        y = None if self.op.activation in FROM_INPUT else y
        common = (x, y, dy, mean, inverse, scale, beta, CODES[self.op.activation], self.op.alpha)
        put = self._parameter_gradients(p, *sums)
        if p.sums is not None:
            gather = norm.bind_given_sums(*moments_in(p.sums), inverse, *sums)
        elif put is not nothing or not self.op.frozen:
            gather = norm.bind_backward_sums(*common, *sums, rest)
        else:
            gather = nothing
        if dx is None:
            return sequence([gather, put])
        rows, state, synchronized = x.shape[0], p.run, self.op.synchronized
        if self.op.frozen:
            apply = norm.bind_backward_apply(*common, None, None, p.adds(0), dx)
            return sequence([gather, put, partial(apply, rows)])
        apply = norm.bind_backward_apply(*common, *sums, p.adds(0), dx)

        def run() -> None:
            gather()
            put()
            alone = not synchronized or state.synchronizer is None
            apply(rows if alone else state.synchronizer.sums(*sums, rows))

        return run

    def _mean_terms(self, p: Pass, terms: MeanTerms) -> Call:
        """From sums that are there: the gradients of gamma and beta, and what that of x lacks."""
        inverse, scale = p.saved["inverse"], p.saved["scale"]
        assert p.workspace is not None
        sums, _ = carve(p.workspace, 2, scale.size, scale.dtype)
        gather = norm.bind_given_sums(*moments_in(p.sums), inverse, *sums)
        put = self._parameter_gradients(p, *sums)
        add = norm.bind_mean_terms(*sums, inverse, scale, terms.adds, *moments_in(terms.coefficients))
        rows, state, synchronized = terms.rows, p.run, self.op.synchronized

        def run() -> None:
            gather()
            put()
            alone = not synchronized or state.synchronizer is None
            add(rows if alone else state.synchronizer.sums(*sums, rows))

        return run

    def _parameter_gradients(self, p: Pass, sum_dy: np.ndarray, sum_dy_xhat: np.ndarray) -> Call:
        """Writes or adds both sums to the gradients of beta and gamma, where these are wanted."""
        gamma, beta = 1, 1 + self.op.scale
        wanted = [(gamma, sum_dy_xhat)] if self.op.scale else []
        wanted += [(beta, sum_dy)] if self.op.center else []
        return sequence([bind_copy(sums, p.dx[i], 1.0, p.adds(i)) for i, sums in wanted if p.dx[i] is not None])

    def subtract_means(self, x: np.ndarray, mean: np.ndarray, coefficients: np.ndarray, dx: np.ndarray) -> Call:
        call: Call = norm.bind_backward_means(rows_of(x), mean, *moments_in(coefficients), rows_of(dx))
        return call


def _round(exact: list[np.ndarray], found: list[np.ndarray]) -> None:
    """Moments in double precision, in that of the statistics."""
    for target, value in zip(found, exact, strict=True):
        target[...] = value
