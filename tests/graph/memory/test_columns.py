"""Variables of which each process has some columns are whole for who reads them."""

import copy

import numpy as np
import pytest

from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.columns import Columns, rearrange
from pydtconv.graph.memory.parameter_store import ParameterStore

COUNT, SHAPE = 3, (5, 4, 6)


@pytest.mark.parametrize("shape", [SHAPE, (6,)])
@pytest.mark.parametrize("rows", [1, 1 << 20])
def test_processes_together_have_all(shape, rows, monkeypatch):
    """The others' arrays are there at once: rows are gathered in the order of the first process's calls."""
    monkeypatch.setattr("pydtconv.graph.memory.columns._GATHERED", rows)
    whole = np.arange(np.prod(shape), dtype="float64").reshape(shape)
    parts = [Columns(index, COUNT, None).part(whole) for index in range(COUNT)]
    flat, at = [part.reshape(-1, part.shape[-1]) for part in parts], 0

    def gather(own, what):
        nonlocal at
        at += len(own)
        return np.stack([part[at - len(own) : at] for part in flat])

    variable = Variable(whole, dtype="float64", name="w")
    columns = Columns(1, COUNT, gather)
    rearrange(variable, columns)
    assert variable.host_array.shape == (*shape[:-1], 2)
    assert variable.shape == shape
    np.testing.assert_array_equal(variable.array, whole)  # kept
    with pytest.raises(ValueError, match="read-only"):
        variable.array[...] = 0
    variable.cut.whole = None
    np.testing.assert_array_equal(variable.numpy(), whole)  # gathered
    at = 0
    twin = copy.deepcopy(variable)
    assert twin.cut is None
    np.testing.assert_array_equal(twin.assign_add(1).array, whole + 1)
    store = ParameterStore([variable])
    assert store.of(variable, store.parameters).shape == variable.host_array.shape
    variable.assign(2 * whole)
    np.testing.assert_array_equal(store.of(variable, store.parameters), 2 * parts[1])
    with pytest.raises(ValueError, match=r"variable 'w': expected shape .*, got \(1,\)"):
        variable.assign(np.zeros(1))
    variable.cut.whole = whole
    rearrange(variable, None)
    assert variable.cut is None
    np.testing.assert_array_equal(variable.array, whole)
    assert variable.array.flags.writeable
