"""`FormerValues`: what a stage read of a variable stands, whatever was assigned to it since."""

from types import SimpleNamespace

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, ops
from pydtconv.loops.former_values import FormerValues


class Variables:
    """Two variables: what stages read of them, and when they are changed."""

    def __init__(self):
        self.former = FormerValues()
        self.a, self.b = (SimpleNamespace(version=0, name=name) for name in "ab")

    def read(self, stage, *variables):
        self.former.note(stage, [SimpleNamespace(inputs=[SimpleNamespace(variable=each) for each in variables])])

    def change(self, stage, *variables):
        """By the actions behind a stage: kept first, as a recording does, then another version."""
        kept = []
        self.former.keep(stage, variables, lambda variable: kept.append((variable.name, stage)) or kept[-1])
        for each in variables:
            each.version += 1
        return kept

    def as_read(self, variable, stage):
        tensor = SimpleNamespace(variable=variable)
        found = self.former.as_read(tensor, stage)
        return "now" if found is tensor else found


def test_each_stage_has_what_it_read():
    both = Variables()
    both.read(0, both.a, both.b)
    assert both.as_read(both.a, 0) == "now"
    assert both.change(0, both.a) == [("a", 0)]
    both.read(1, both.a)
    assert both.change(2, both.a) == [("a", 2)]
    both.read(3, both.a)
    assert [both.as_read(both.a, stage) for stage in range(4)] == [("a", 0), ("a", 2), ("a", 2), "now"]
    assert [both.as_read(both.b, stage) for stage in range(4)] == ["now"] * 4
    assert both.former.tensors() == {("a", 0), ("a", 2)}
    both.former.clear()
    assert both.as_read(both.a, 0) == "now"
    assert both.former.tensors() == set()


def test_what_nobody_read_is_not_kept():
    both = Variables()
    both.read(0, both.a, None)
    assert both.change(0, both.b, both.b) == []
    assert both.change(1, both.a, both.a) == [("a", 1)]


def test_a_change_from_elsewhere_makes_the_value_unknown():
    both = Variables()
    both.read(0, both.a)
    assert both.former.value_read(both.a, 0, changed=False) == (True, None)
    both.a.version += 1  # by nobody's action
    assert both.former.value_read(both.a, 0, changed=False) == (False, None)
    assert both.former.value_read(both.b, 0, changed=False) == (True, None)
    # actions that are said to have changed it, without a value kept
    assert both.former.value_read(both.b, 0, changed=True) == (False, None)


def test_a_kept_value_is_known_whatever_comes_behind_it():
    both = Variables()
    both.read(0, both.a)
    both.change(0, both.a)
    both.a.version += 5
    known, former = both.former.value_read(both.a, 0, changed=True)
    assert known
    assert former.tensor == ("a", 0)


def product_and_assigned(times):
    """A tape, a sum of 3 v v where v is 2 and five times as much with each further one, and v."""
    variable, total = keras.Variable(np.float32(2)), ops.convert_to_tensor(np.float32(0))
    with GradientTape() as tape:
        for _ in range(times):
            total = total + variable * variable * np.float32(3)
            variable.assign(variable * 5)
    return tape, total, variable


def test_gradients_are_by_the_value_that_was_read():
    tape, total, variable = product_and_assigned(1)
    assert float(variable.value) == 10
    assert float(tape.gradient(total, variable)) == 2 * 2 * 3


def test_gradients_by_several_values_of_one_variable_are_refused():
    tape, total, variable = product_and_assigned(2)
    with pytest.raises(RuntimeError, match="was changed after it was read"):
        tape.gradient(total, variable)
