"""Old modules of Keras: every one is found, and has the names of the module that they are in now."""

import importlib

import pytest

from pydtconv.compat.keras2 import extra, modules
from pydtconv.compat.keras_names import Alias

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@pytest.mark.parametrize("root", ["keras", "tensorflow.keras"])
def test_every_old_module_has_the_names_of_the_new_one(tf, root):
    for old, new in modules.WHERE.items():
        found = importlib.import_module(f"{root}.{old}")
        expected = importlib.import_module(f"{root}.{new}".rstrip("."))
        assert isinstance(found, Alias), old
        names = [name for name in dir(expected) if not isinstance(getattr(expected, name), Alias)]
        assert names, old
        for name in set(names) - set(extra.engine()) - modules.names(found._target.__name__).keys():
            if name[0].isupper():
                assert getattr(found, name) is getattr(expected, name), (old, name)


def test_every_other_root_is_a_part_of_keras(tf):
    for old, new in modules.ROOTS.items():
        found, expected = importlib.import_module(old), importlib.import_module(new)
        assert found._target is expected._target, old
    from tensorflow.contrib.keras.python.keras.layers.core import Dense
    from tensorflow.python.keras.utils.np_utils import to_categorical

    assert Dense is tf.keras.layers.Dense
    assert to_categorical is tf.keras.utils.to_categorical


def test_every_old_name_is_there(tf):
    for module in modules.NAMES:
        found = importlib.import_module(module.replace("pydtconv", "keras"))
        for name, value in modules.names(module).items():
            assert getattr(found, name) is not None, (module, name)
            assert callable(value), (module, name)


def test_the_backend_has_tensorflow_and_a_session(tf):
    from keras import backend as K

    assert K.tf is tf
    assert K.get_session().run(tf.global_variables_initializer()) is None


def test_what_is_not_here_says_what_to_write_instead(tf):
    for module, table in ("layers", extra.NO_LAYERS), ("utils", extra.NO_UTILS):
        for name, instead in table.items():
            with pytest.raises(NotImplementedError, match=name) as told:
                getattr(importlib.import_module(f"keras.{module}"), name)(3)
            assert instead in str(told.value)


def test_a_module_that_was_a_function_can_be_called(tf):
    from keras.layers import Input, merge
    from keras.layers.merge import concatenate

    a, b = Input((3,)), Input((4,))
    assert merge([a, b], mode="concat").shape == concatenate([a, b]).shape == (None, 7)
    with pytest.raises(TypeError, match="cannot be called"):
        importlib.import_module("keras.layers.core")([a, b])


def test_all_names_of_a_module_are_imported_by_a_star(tf):
    there = {}
    exec("from keras.layers import *\nfrom keras.models import *\nfrom keras.optimizers import *", there)
    assert {"Conv2D", "MaxPooling2D", "Convolution2D", "concatenate", "Model", "Input", "Adam"} <= there.keys()


def test_nothing_of_it_is_left_behind(tf):
    import pydtconv
    from pydtconv.compat import keras_names

    assert hasattr(pydtconv.Model, "fit_generator")
    keras_names.uninstall()
    assert not hasattr(pydtconv.Model, "fit_generator")
    assert not hasattr(pydtconv.optimizers.Optimizer, "lr")
    with pytest.raises(ValueError, match="nb_filter"):
        pydtconv.layers.Conv2D(3, 3, nb_filter=3)
