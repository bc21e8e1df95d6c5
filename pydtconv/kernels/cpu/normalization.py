"""Batch normalization (cext/nn/batchnorm.c)."""

from __future__ import annotations

from functools import partial

import numpy as np

from pydtconv._ext import norm
from pydtconv.dtypes import real
from pydtconv.kernels.base import Call, Kernel, MeanTerms, Pass
from pydtconv.kernels.cpu.activation import CODES
from pydtconv.kernels.cpu.moments import moments_in
from pydtconv.kernels.cpu.rows import carve, carved_bytes, real_of, rows_of
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
        beta = self.op.beta_of(p.x)
        moving_mean, moving_variance = (p.x[i] for i in self.op.state)
        mean, inverse, scale = p.saved["mean"], p.saved["inverse"], p.saved["scale"]
        code = CODES[self.op.activation]
        assert p.workspace is not None
        run_state = p.run
        (variance,), rest = carve(p.workspace, 1, x.shape[1], real_of(x))
        moments = moments_in(p.x[-1]) if self.op.given else None
        exact, rest = carve(rest, 2, x.shape[1], "float64") if self.op.exact else ([], rest)
        application = (x, mean, scale, beta, code, self.op.alpha, y)

        def infer() -> None:
            mean[...] = moving_mean
            norm.batchnorm_scale(moving_variance, gamma, self.op.epsilon, inverse, scale)
            norm.batchnorm_apply(*application)

        def train() -> None:
            found = exact or (mean, variance)
            if exact:
                norm.batchnorm_exact_statistics(x, *exact, rest)
            elif moments is None:
                norm.batchnorm_statistics(x, mean, variance, rest)
            else:
                mean[...], variance[...] = moments
            if self.op.synchronized and run_state.synchronizer is not None:
                run_state.synchronizer.moments(*found, x.shape[0])
            if exact:
                mean[...], variance[...] = exact
            norm.batchnorm_scale(variance, gamma, self.op.epsilon, inverse, scale)
            norm.batchnorm_moving(mean, variance, self.op.momentum, moving_mean, moving_variance)
            if y is not None:
                norm.batchnorm_apply(*application)

        return train if (p.training or self.op.always) and not self.op.frozen else infer

    def recompute(self, p: Pass) -> Call:
        """y once more, from the statistics that forward has saved; the moving ones stay as they are."""
        x, y = rows_of(p.x[0]), rows_of(p.y[0])
        beta = self.op.beta_of(p.x)
        mean, scale, code = p.saved["mean"], p.saved["scale"], CODES[self.op.activation]

        def run() -> None:
            norm.batchnorm_apply(x, mean, scale, beta, code, self.op.alpha, y)

        return run

    def backward(self, p: Pass) -> Call:
        if p.mean_terms is not None:
            return self._mean_terms(p, p.mean_terms)
        x, y, dy, dx = rows_of(p.x[0]), rows_of(p.y[0]), rows_of(p.dy[0]), rows_of(p.dx[0])
        beta = self.op.beta_of(p.x)
        dgamma = p.dx[1] if self.op.scale else None
        dbeta = p.dx[1 + self.op.scale] if self.op.center else None
        accumulate, add_gamma, add_beta = p.adds(0), p.adds(1), p.adds(1 + self.op.scale)
        mean, inverse, scale = p.saved["mean"], p.saved["inverse"], p.saved["scale"]
        code = CODES[self.op.activation]
        assert p.workspace is not None
        (sum_dy, sum_dy_xhat), rest = carve(p.workspace, 2, x.shape[1], real_of(x))
        y = None if self.op.activation in FROM_INPUT else y
        common = (x, y, dy, mean, inverse, scale, beta, code, self.op.alpha)
        rows, run_state = x.shape[0], p.run

        given = None if p.sums is None else moments_in(p.sums)

        def run() -> None:
            if given is not None:
                sum_dy[...] = given[0]
                np.multiply(given[1], inverse, out=sum_dy_xhat)
            elif dgamma is not None or dbeta is not None or not self.op.frozen:
                norm.batchnorm_backward_sums(*common, sum_dy, sum_dy_xhat, rest)
            _put(dgamma, sum_dy_xhat, add_gamma)
            _put(dbeta, sum_dy, add_beta)
            if dx is None:
                return
            if self.op.frozen:
                norm.batchnorm_backward_apply(*common, None, None, rows, accumulate, dx)
                return
            count = rows
            if self.op.synchronized and run_state.synchronizer is not None:
                count = run_state.synchronizer.sums(sum_dy, sum_dy_xhat, rows)
            norm.batchnorm_backward_apply(*common, sum_dy, sum_dy_xhat, count, accumulate, dx)

        return run

    def _mean_terms(self, p: Pass, terms: MeanTerms) -> Call:
        """From sums that are there: the gradients of gamma and beta, and what that of x lacks."""
        dgamma = p.dx[1] if self.op.scale else None
        dbeta = p.dx[1 + self.op.scale] if self.op.center else None
        add_gamma, add_beta = p.adds(1), p.adds(1 + self.op.scale)
        inverse, scale = p.saved["inverse"], p.saved["scale"]
        offset, slope = moments_in(terms.coefficients)
        first, second = moments_in(p.sums)
        assert p.workspace is not None
        (sum_dy, sum_dy_xhat), _ = carve(p.workspace, 2, scale.size, scale.dtype)
        rows, run_state = terms.rows, p.run

        def run() -> None:
            sum_dy[...] = first
            np.multiply(second, inverse, out=sum_dy_xhat)
            _put(dgamma, sum_dy_xhat, add_gamma)
            _put(dbeta, sum_dy, add_beta)
            count = rows
            if self.op.synchronized and run_state.synchronizer is not None:
                count = run_state.synchronizer.sums(sum_dy, sum_dy_xhat, rows)
            np.multiply(sum_dy_xhat, inverse, out=sum_dy_xhat)
            for total, value in ((offset, sum_dy), (slope, sum_dy_xhat)):
                np.multiply(value, scale, out=value)
                np.multiply(value, value.dtype.type(1 / count), out=value)
                _put(total, value, terms.adds)

        return run

    def subtract_means(self, x: np.ndarray, mean: np.ndarray, coefficients: np.ndarray, dx: np.ndarray) -> Call:
        return partial(norm.batchnorm_backward_means, rows_of(x), mean, *moments_in(coefficients), rows_of(dx))


def _put(target: np.ndarray | None, value: np.ndarray, accumulate: bool) -> None:
    """Writes or adds a vector to a parameter's gradient."""
    if target is None:
        return
    if accumulate:
        np.add(target, value, out=target)
    else:
        target[...] = value
