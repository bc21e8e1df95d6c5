"""Complex numbers in TensorFlow's names and in the functions of `K`: kept, made real by a rule, or refused by name."""

import inspect

import numpy as np
import pytest

from pydtconv.compat import keras_backend
from pydtconv.compat.tensorflow import functions
from pydtconv.compat.tensorflow.image import image_table

Z = (np.random.RandomState(0).rand(1, 4, 4, 3) * (1 + 2j)).astype("complex64")
#: arguments without a default, by their names
GIVEN = {
    **{"size": (2, 2), "target_height": 2, "target_width": 2, "offset_height": 0, "offset_width": 0, "delta": 0.1},
    **{"central_fraction": 0.5, "contrast_factor": 0.5, "saturation_factor": 0.5, "max_delta": 0.2, "lower": 0.2},
    **{"upper": 0.5, "max_val": 1.0, "dtype": "float32", "shape": (1, 4, 4, 3), "axis": 0, "axes": 0, "b": Z, "y": Z},
    **{"x2": Z, "output": Z, "min_value": 0.0, "max_value": 1.0, "rep": 2, "num_classes": 3, "height_factor": 2},
    **{"width_factor": 2, "pattern": (0, 2, 1, 3)},
}
#: what is real by a rule: a modulus, its square and its root
REAL = ("abs", "std", "var")


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("table", [keras_backend.table, image_table], ids=["K", "image"])
def test_no_function_drops_imaginary_parts(table):
    refused = set()
    for name, function in table().items():
        needed = [k for k, p in inspect.signature(function).parameters.items() if p.default is p.empty]
        try:
            found = function(Z, *(GIVEN.get(key, 1) for key in needed[1:]))
        except (TypeError, ValueError, IndexError, AttributeError, NotImplementedError) as error:
            refused |= {name} if "expected real numbers, got complex64" in str(error) else set()
            continue
        found = np.asarray(found[0] if isinstance(found, (tuple, list)) else found)
        assert found.dtype.kind != "f" or name in REAL, name
    known = {"cast", "cast_to_floatx", "constant", "variable"} if table is keras_backend.table else {"psnr", "resize"}
    assert known <= refused


def test_casts_name_what_they_refuse():
    with pytest.raises(TypeError, match="array of float32: expected real numbers, got complex64"):
        functions.cast(Z, "float32")
    assert functions.cast(Z, "complex128").dtype == "complex128"
    assert functions.cast(Z.real, "complex64").dtype == "complex64"
