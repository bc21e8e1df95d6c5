"""Names of tensorflow that are not here, and why, for errors."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

_TAPE = "operators have no names: tf.GradientTape gives gradients, tf.custom_gradient takes one of your own"
_GRAPH = "there are no graphs that a script edits: tf.function traces code"
_SCIPY = "of arrays, scipy.special has it"
_SAMPLERS = "losses over samples of classes are for texts: use softmax_cross_entropy_with_logits over all classes"
_SAVED = (
    "a graph of TensorFlow runs on TensorFlow alone: model.save('x.keras') keeps a model, model.export('x.onnx') ONNX"
)
_PROTO = "it is for TensorFlow's own messages: tf.train.Example keeps data"
_SERVICE = "there is no service of data: Dataset.prefetch works ahead, Dataset.save keeps elements"
_STRUCTURE = "a data set is Python code: Dataset.element_spec says what its elements are"
_REDUCED = "use Dataset.group_by_window, or a dict in a loop of Python"
_NEXT = "use Python's next(iterator, None)"
_QUANTIZED = "quantization is not planned"
_ONE = "there is one process with one CPU: start several by `mpiexec -n 4 pydtconv run`"
_TPU = "there is no TPU"
_RAGGED = "tensors have one extent along each axis: pad to it, and mask (tf.sequence_mask)"
_SPARSE = "tensors are dense: tf.sparse.to_dense makes one"
_TYPES = "types of a script's own have no meaning in traced code: use a tuple, or a dict"
_NUMPY = "of arrays, NumPy or SciPy has it"
_PILLOW = "the package Pillow reads such files"
_DILATIONS = "tf.nn.convolution takes dilations"
_INSIDE = "it is of TensorFlow's inside"

#: by module: patterns of names, and the reason
_REASONS: dict[str, tuple[tuple[str, str], ...]] = {
    "tensorflow": (
        ("Graph Operation import_graph_def graph_util nondifferentiable_batch_function", _GRAPH),
        ("RegisterGradient AggregationMethod gradients hessians", _TAPE),
        ("conv conv2d_backprop_*", "tf.nn.conv2d convolves, and tf.GradientTape gives its gradients"),
        ("IndexedSlices* Sparse*Spec raw_ops", "gradients are dense, and operators are functions of tf"),
        ("Ragged* ragged ragged_*", _RAGGED),
        ("*Spec TypeSpec type_spec_from_value types register_tensor_conversion_function", _TYPES),
        ("CriticalSection DeviceSpec check_pinned dtensor queue", _ONE),
        ("saved_model lite tools", _SAVED),
        ("tpu xla mlir", _TPU + ": code is compiled by its plan"),
        ("qint* quint* quantization resource variant", _QUANTIZED),
        ("load_library load_op_library sysconfig security make_ndarray make_tensor_proto", _INSIDE),
        ("feature_column sets", "columns of tables are not what this is about: use layers, such as StringLookup"),
        ("profiler", "`pydtconv train --profile` and the callback TensorBoard measure"),
        ("fftnd ifftnd rfftnd irfftnd fingerprint random_index_shuffle", _NUMPY),
        ("extract_volume_patches", "keras.ops.image.extract_patches_3d has it"),
        ("required_space_to_batch_paddings", _DILATIONS),
        ("approx_top_k", "tf.math.approx_max_k has it"),
        ("autodiff", "keras.ops.jvp has derivatives in a direction"),
        ("text", "keras.layers.TextVectorization makes numbers of texts"),
    ),
    "tensorflow.nn": (
        ("RNNCell*", "keras.layers.RNN takes cells of its own kind, such as keras.layers.LSTMCell"),
        ("*_sampler compute_accidental_hits nce_loss sampled_softmax_loss", _SAMPLERS),
        ("embedding_lookup_sparse safe_embedding_lookup_sparse ctc_unique_labels", _SPARSE),
        ("depthwise_conv2d_backprop_*", "tf.GradientTape gives gradients of tf.nn.depthwise_conv2d"),
        ("fractional_*", "windows have one size: tf.nn.max_pool, or tf.image.resize"),
        ("with_space_to_batch", _DILATIONS),
        ("isotonic_regression", "of arrays, scipy.optimize.isotonic_regression has it"),
        ("experimental", "tf.nn.dropout draws"),
    ),
    "tensorflow.math": (
        ("bessel_* betainc erfcinv igamma* ndtri polygamma zeta special", _SCIPY),
        ("sobol_sample", "scipy.stats.qmc.Sobol has it"),
    ),
    "tensorflow.linalg": (
        ("LinearOperator*", "write the matrix, and tf.linalg.matmul or tf.linalg.solve"),
        ("*tri* lu* banded_* experimental", _NUMPY + " (scipy.linalg)"),
    ),
    "tensorflow.random": (
        ("*_sampler", _SAMPLERS),
        ("create_rng_state stateless_parameterized_truncated_normal", "tf.random.Generator and stateless_normal draw"),
    ),
    "tensorflow.random.experimental": (
        ("create_rng_state index_shuffle stateless_shuffle", "tf.random.Generator and tf.random.shuffle draw"),
    ),
    "tensorflow.image": (
        ("decode_jxl decode_webp", _PILLOW),
        ("extract_glimpse", "tf.image.crop_to_bounding_box cuts out"),
        (
            "generate_bounding_box_proposals",
            "detectors are other packages'",
        ),
    ),
    "tensorflow.config": (("*", _ONE),),
    "tensorflow.config.experimental": (
        ("get_memory_info get_memory_usage", "model.plan(batch_size=...) says what a step takes"),
        ("*", _ONE),
    ),
    "tensorflow.ragged": (("*", _RAGGED),),
    "tensorflow.sparse": (("*", _SPARSE),),
    "tensorflow.summary": (("*", _INSIDE),),
    "tensorflow.compiler.tf2xla.python.xla": (("*", "code is compiled by its plan: write functions of tf"),),
    "tensorflow.debugging": (("*", "tracebacks are whole, and TerminateOnNaN(find_layer=True) finds a layer"),),
    "tensorflow.signal": (
        ("irfft2d", _NUMPY),
        ("*", _NUMPY + " (scipy.fft, scipy.signal)"),
    ),
    "tensorflow.test": (("*", "unittest and pytest test"),),
    "tensorflow.distribute": (("*", _ONE),),
    "tensorflow.distribute.cluster_resolver": (("*", _ONE),),
    "tensorflow.dtypes": (("qint* quint* QUANTIZED* resource variant", _QUANTIZED), ("*", _TYPES)),
    "tensorflow.experimental": (("*", _TYPES),),
    "tensorflow.experimental.numpy": (("*", "NumPy has no such name"),),
    "tensorflow.compat": (("*", _INSIDE),),
    "tensorflow.data": (("*Spec", _STRUCTURE),),
    "tensorflow.data.Dataset": (
        ("ragged_batch", _RAGGED + ": Dataset.padded_batch does it"),
        ("sparse_batch", _SPARSE + ", Dataset.padded_batch batches"),
        ("fingerprint", _STRUCTURE),
    ),
    "tensorflow.data.experimental": (
        ("dense_to_*_batch", _RAGGED + ": Dataset.padded_batch does it"),
        ("Reducer group_by_reducer", _REDUCED),
        ("*optional Optional", _NEXT),
        ("SqlDataset", "use Dataset.from_generator with Python's sqlite3"),
        ("*table_from_dataset DatasetInitializer", "tf.lookup.KeyValueTensorInitializer makes a table"),
        ("pad_to_cardinality", "use Dataset.concatenate"),
        ("make_saveable_from_iterator", "keras.callbacks.BackupAndRestore keeps the position of fit"),
        ("*variant get_model_proto", _STRUCTURE),
        ("service distributed_save", _SERVICE),
    ),
    "tensorflow.io": (
        ("RaggedFeature parse_sequence_example", _RAGGED + ": use FixedLenFeature, and parse_single_sequence_example"),
        ("SparseFeature *serialize*_sparse", _SPARSE + ", VarLenFeature reads one"),
        ("*_proto write_graph", _PROTO),
        ("decode_jxl decode_webp", _PILLOW),
        ("match_filenames_once", "tf.io.matching_files and Dataset.list_files find files"),
    ),
    "tensorflow.lookup.experimental": (("DenseHashTable", "use MutableHashTable"),),
    "tensorflow.strings": (
        ("to_hash_bucket", "its values are not the same everywhere: use tf.strings.to_hash_bucket_fast"),
        ("*_with_offsets unicode_script", "Python's unicodedata has it"),
    ),
    "tensorflow.train": (("*", "tf.train.Checkpoint and model.save keep variables"),),
    "tensorflow.nest": (("*", "keras.tree has it"),),
    "tensorflow.autograph": (("*", _GRAPH),),
    "tensorflow.autograph.experimental": (("*", _GRAPH),),
}


def reason(module: str, name: str, names: Iterable[str]) -> str | None:
    """Why a module of tensorflow that has `names` lacks this one; None for what may be a wrong letter."""
    for patterns, why in _REASONS.get(module, ()):
        if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
            return None if patterns == "*" and get_close_matches(name, names, 1, 0.85) else why
    return None
