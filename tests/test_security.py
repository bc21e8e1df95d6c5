"""SECURITY.md: each sentence that promises something of a file has a test; those that are of no other file are here."""

import ast
import json
import re
from pathlib import Path

import h5py
import pytest

import pydtconv
from pydtconv import Sequential, layers, saving, utils
from pydtconv.checkpoints import CheckpointError
from pydtconv.files.reading import BadFileError
from pydtconv.support.random import get_state
from tests.serialization.members import network
from tests.serialization.trying import write

ROOT = Path(__file__).parents[1]
VALUES, HDF5, TRIAL = "serialization/test_values.py", "saving/test_hostile_hdf5.py", "saving/test_hdf5_trial.py"
BAD, ONNX, GET = "saving/test_bad_files.py", "interchange/onnx/test_reader.py", "files/test_download.py"
HERE, LAMBDAS, IMAGES = "test_security.py", "saving/test_lambdas.py", "utils/test_images_and_sequences.py"
#: where a sentence begins, and its tests: all are walked, in the order of SECURITY.md
TESTS: dict[str, list[str]] = {
    "Nothing is unpickled but": ["files/test_pickles.py::test_what_was_written_to_do_harm"],
    "ONNX files hold no code": ["interchange/onnx/test_importer.py::test_refusals"],
    "A model's config names": [
        f"{VALUES}::test_an_operator_is_a_class_of_operators",
        f"{LAMBDAS}::test_nothing_is_unmarshalled_in_safe_mode",
        f"{LAMBDAS}::test_safe_mode_may_be_off_for_the_process",
        f"{HERE}::test_a_config_names_no_other_class_or_function",
    ],
    "Then it can do": [f"{LAMBDAS}::test_from_keras_where_the_user_trusts_the_file"],
    "A config calls nothing but": [
        f"{VALUES}::test_functions_that_call_others_are_not_called",
        f"{VALUES}::test_no_function_takes_a_function",
        f"{VALUES}::test_calls_without_a_tensor_of_the_model_are_no_operators",
    ],
    "HDF5 filters that are": [f"{HERE}::test_filters_that_are_plug_ins_are_refused"],
    "Images are decoded as": [
        "files/test_image_folder.py::test_postscript_named_as_a_photograph_reaches_no_interpreter",
        f"{IMAGES}::test_what_is_no_image_is_named_and_reaches_no_interpreter",
        "files/test_image_folder.py::test_each_format_is_read_whatever_its_suffix",
        f"{IMAGES}::test_formats",
    ],
    "A config names no file": [
        f"{VALUES}::test_a_vocabulary_of_a_file_is_no_path",
        f"{VALUES}::test_a_vocabulary_is_read_where_the_file_is_trusted",
    ],
    "HDF5 links, external": [
        f"{BAD}::test_a_link_to_another_file_is_not_followed",
        f"{BAD}::test_data_kept_in_another_file_is_not_read",
        f"{BAD}::test_a_pipe_is_refused_at_once",
        "interchange/onnx/test_importer.py::test_data_of_another_file",
    ],
    "Archives that are downloaded": [
        f"{GET}::test_an_archive_may_not_write_elsewhere",
        f"{GET}::test_a_name_does_not_lead_out_of_the_cache",
    ],
    "Sizes are looked at before data": [
        f"{BAD}::test_a_bomb_is_refused_before_it_is_unpacked",
        "checkpoints/test_files.py::test_a_bomb_is_refused_before_it_is_unpacked",
        f"{BAD}::test_the_shape_is_looked_at_before_compressed_data",
        "datasets/test_files.py::test_a_header_that_claims_too_much_is_refused",
    ],
    "All that is made of a config": [
        f"{VALUES}::test_sizes_take_no_memory_but_that_of_weights",
        f"{VALUES}::test_metrics_of_any_size_are_refused",
        f"{VALUES}::test_shapes_are_inferred_without_arrays",
        f"{VALUES}::test_each_argument_at_values_made_to_harm",
    ],
    "For ONNX files the sizes": [
        f"{ONNX}::test_constants_that_many_nodes_make_are_bounded",
        f"{ONNX}::test_initializers_that_share_data_outside_of_the_file_are_bounded",
    ],
    "An archive that `get_file` unpacks": [
        f"{GET}::test_an_archive_may_not_unpack_to_any_size",
        f"{GET}::test_an_archive_whose_digest_is_known_may",
    ],
    "Groups of HDF5 files": [
        f"{HDF5}::test_groups_that_hold_one_another",
        f"{HERE}::test_shapes_have_64_extents_at_most",
    ],
    "Images are limited by Pillow": [f"{HERE}::test_images_are_limited_by_pillow"],
    "A dtype is one of numbers": ["test_dtypes.py::test_names", "test_dtypes.py::test_files"],
    "An extent, a step or": ["test_extents.py::test_limits", "test_extents.py::test_each_number_of_each"],
    "What is not is refused": ["test_dtypes.py::test_files", "test_extents.py::test_files"],
    "libhdf5 may crash": [f"{TRIAL}::test_what_does_not_come_back_is_ended"],
    "Weights and models are therefore": [
        f"{TRIAL}::test_a_tree_without_end_is_an_error",
        f"{TRIAL}::test_a_text_of_any_length_takes_no_memory_here",
    ],
    "Where no process can be started": [
        f"{TRIAL}::test_a_helper_that_cannot_be_run_is_no_damaged_file",
        f"{TRIAL}::test_a_process_that_cannot_be_copied",
    ],
    "A file that is refused leaves": [
        f"{BAD}::test_data_that_cannot_be_unpacked_changes_nothing",
        f"{HERE}::test_a_model_that_is_refused_leaves_random_numbers_as_they_were",
        "callbacks/test_backup_files.py::test_a_whole_checkpoint_of_another_structure_is_an_error_that_changes_nothing",
    ],
    "Before anything is made": [f"{VALUES}::test_all_of_a_file_is_looked_at_before_anything_is_made"],
    "Before an object is made": [
        f"{VALUES}::test_the_value_is_named",
        f"{VALUES}::test_configs_of_the_package_are_within_the_table",
    ],
    "The error names the file": [
        f"{VALUES}::test_the_value_is_named",
        f"{BAD}::test_a_config_that_is_not_one_names_the_file",
    ],
    "It is a `pydtconv.utils.BadFileError": [f"{HERE}::test_errors_of_files_are_of_the_system_and_of_values"],
    "A whole file of another model": [
        "saving/test_files.py::test_mismatch_names_layer_expected_found_and_changes_nothing"
    ],
    "Control characters are": [
        "test_naming.py::test_errors_of_files",
        "test_naming.py::test_messages_and_progress",
        "test_naming.py::test_configs",
    ],
}
#: what is only a heading of the others, or how long something takes
NO_PROMISE = (
    "No code of it runs", "No other file is", "Memory is bounded", "Dtypes and extents are", "HDF5 comes back",
    "It takes some 10 ms", "Nothing changes before", "All values of a config", "Names are only shown",
)  # fmt: skip


def sentences():
    text = (ROOT / "SECURITY.md").read_text()
    part = text.partition("## What is promised")[2].partition("\n- ")[2].partition("Not promised:")[0]
    plain = " ".join(part.replace("\n- ", " ").replace("**", "").split())
    return re.split(r"(?<=\.) (?=[A-Z]|libhdf5)", plain)


def test_each_sentence_has_a_test():
    promises = [sentence for sentence in sentences() if not sentence.startswith(NO_PROMISE)]
    assert len(promises) == len(TESTS)
    for sentence, begins in zip(promises, TESTS, strict=True):
        assert sentence.startswith(begins)


def test_each_of_these_tests_is_there():
    for name in {name for names in TESTS.values() for name in names}:
        file, _, function = name.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text())
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


# --- what no other file tests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["os.system", "print", "eval", "subprocess", "pydtconv.cli.main", "load_model"])
def test_a_config_names_no_other_class_or_function(name, tmp_path):
    module, _, function = name.rpartition(".")
    data = {"module": module or "builtins", "class_name": "function", "config": function, "registered_name": function}
    made = {"module": module or "builtins", "class_name": function, "config": {}, "registered_name": None}
    for place in ("activation", "kernel_initializer", "kernel_regularizer"):
        for value in (data, made, function):
            config = {"units": 3, "name": "it", place: value}
            dense = {"module": "keras.layers", "class_name": "Dense", "config": config}
            write(tmp_path / "a.keras", json.dumps(network(dense, ((6,),))))
            with pytest.raises(BadFileError, match=r"a\.keras.*'it'"):
                saving.load_model(tmp_path / "a.keras")
    write(tmp_path / "a.keras", json.dumps(network({**made, "config": {"name": "it"}}, ((6,),))))
    with pytest.raises(BadFileError, match=r"a\.keras"):
        saving.load_model(tmp_path / "a.keras")


def small():
    return Sequential([layers.Input((6,)), layers.Dense(5)], name="small")


def test_filters_that_are_plug_ins_are_refused(tmp_path):
    path = tmp_path / "a.weights.h5"
    small().save_weights(path)
    with h5py.File(path, "r+") as file:
        group = file["layers/dense/vars"]
        del group["0"]
        group.create_dataset("0", (6, 5), "float32", chunks=(6, 5), compression=305, allow_unknown_filter=True)
    with pytest.raises(BadFileError, match=r"a\.weights\.h5.*stored plainly or deflated, found the filters"):
        small().load_weights(path)


def test_shapes_have_64_extents_at_most(tmp_path):
    from pydtconv.files.reading import elements_of

    assert elements_of((1,) * 64) == 1
    with pytest.raises(BadFileError, match="expected up to 64 extents"):
        elements_of((1,) * 65)


def test_images_are_limited_by_pillow(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    image.new("RGB", (9, 9)).save(tmp_path / "a.png")
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 40)  # twice as many are an error
    with pytest.raises(BadFileError, match=r"a\.png"):
        utils.load_img(tmp_path / "a.png")


def test_a_model_that_is_refused_leaves_random_numbers_as_they_were(tmp_path):
    """Layers before the one that is refused have been made."""
    bad = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 3, "name": "bad", "activation": "none"}}
    good = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 3, "name": "good"}}
    source = {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [None, 6]}}
    config = {"name": "net", "layers": [source, good, bad]}
    write(tmp_path / "a.keras", json.dumps({"module": "keras", "class_name": "Sequential", "config": config}))
    utils.set_random_seed(3)
    before = repr(get_state())
    with pytest.raises(BadFileError, match=r"a\.keras.*'bad'"):
        saving.load_model(tmp_path / "a.keras")
    assert repr(get_state()) == before


def test_errors_of_files_are_of_the_system_and_of_values():
    assert pydtconv.utils.BadFileError is BadFileError
    assert issubclass(BadFileError, OSError)
    assert issubclass(BadFileError, ValueError)
    assert issubclass(CheckpointError, BadFileError)
