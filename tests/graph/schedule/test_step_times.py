"""Predicted seconds of steps: parts of a gradient count as parts, and what is measured tells of what is not."""

from __future__ import annotations

import pytest

import pydtconv as keras
from pydtconv import config, layers
from pydtconv.graph.schedule.step_times import StepTimes, estimate, signature
from pydtconv.graph.schedule.steps import BackwardStep, UpdateStep


def plan_of(*hidden):
    inputs = keras.Input((8, 8, 4))
    x = layers.Flatten()(layers.Conv2D(8, 3, padding="same")(inputs))
    for units in hidden:
        x = layers.Dense(units)(x)
    model = keras.Model(inputs, x)
    model.compile("sgd", "mse")
    return model.plan(16)


def of_dense(plan):
    return [step for step in plan.steps if isinstance(step, BackwardStep) and step.node.op.name == "dense"]


def test_the_rows_of_a_gradient_together_take_as_long_as_the_whole() -> None:
    plan = plan_of(2048, 2048)
    parts = [step for step in of_dense(plan) if step.rows is not None]
    assert len(parts) >= 2
    by_rows = sum(estimate(step, 1) for step in parts)
    weights = sum(step.dx[1].spec.size for step in parts)
    # each weight is written, and multiplied and added 16 times, once in all parts together
    assert by_rows == pytest.approx(4 * weights / 1.8e10 + 2 * 16 * weights / 6e10, rel=0.1)
    assert any(isinstance(step, UpdateStep) for step in plan.steps)


def test_what_has_not_been_measured_is_off_by_what_the_measured_is_off() -> None:
    plan = plan_of(64, 48, 32)
    steps, guess = of_dense(plan), [estimate(step, 2) for step in of_dense(plan)]
    known = {signature(steps[0]): 3 * guess[0]}
    assert StepTimes(2, known).of(steps) == pytest.approx([3 * each for each in guess])
    convolution = next(step for step in plan.steps if step.node.op.name == "conv")
    # nothing of its kind has been measured: as all others
    both = StepTimes(2, known).of([steps[0], convolution])
    assert both == pytest.approx([3 * guess[0], 3 * estimate(convolution, 2)])
    assert StepTimes(2, {}).of([convolution]) == [estimate(convolution, 2)]


def test_of_one_kind_and_of_all_that_is_measured() -> None:
    plan = plan_of(64, 48)
    dense = of_dense(plan)
    forward = [step for step in plan.steps if step.kind == "forward" and step.node.op.name == "dense"]
    guess = {step: estimate(step, config.num_threads()) for step in (*dense, *forward)}
    known = {signature(dense[0]): 5 * guess[dense[0]], signature(forward[0]): 2 * guess[forward[0]]}
    found = StepTimes(config.num_threads(), known).of([*dense, *forward])
    assert found[1] == pytest.approx(5 * guess[dense[1]])
    assert found[-1] == pytest.approx(2 * guess[forward[-1]])
