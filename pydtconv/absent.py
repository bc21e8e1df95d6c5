"""Names of Keras 3 that are not here, and why: for errors, and for the page that `tools/keras_coverage.py` writes."""

from __future__ import annotations

#: why names are not there: (reason, {module: names})
REASONS: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "Audio files are not read (`ops.stft`, `STFTSpectrogram` and `MelSpectrogram` are there)",
        {
            "keras.utils": "audio_dataset_from_directory",
        },
    ),
    (
        "Quantization is not planned",
        {
            "keras": "Quantizer",
            "keras.dtype_policies": "AWQDTypePolicy GPTQDTypePolicy Int4DTypePolicy QuantizedDTypePolicy "
            "QuantizedFloat8DTypePolicy",
            "keras.quantizers": "AWQConfig AbsMaxQuantizer Float8QuantizationConfig GPTQConfig Int4QuantizationConfig "
            "Int8QuantizationConfig QuantizationConfig Quantizer abs_max_quantize "
            "abs_max_quantize_grouped_with_zero_point compute_float8_amax_history compute_float8_scale deserialize "
            "fake_quant_with_min_max_vars get pack_int4 quantize_and_dequantize serialize unpack_int4",
        },
    ),
    (
        "Scripts under `pydtconv run` find them; elsewhere `utils` has those of logging, and tracebacks are whole",
        {
            "keras.config": "backend disable_interactive_logging disable_traceback_filtering "
            "enable_interactive_logging enable_traceback_filtering is_interactive_logging_enabled "
            "is_traceback_filtering_enabled set_backend"
        },
    ),
    (
        "They choose what other backends do, or limit every `fit` of a process",
        {
            "keras.config": "disable_flash_attention enable_flash_attention is_flash_attention_enabled is_nnx_enabled "
            "max_epochs max_steps_per_epoch set_max_epochs set_max_steps_per_epoch"
        },
    ),
    (
        "A `train_step` of your own distils: see `Model.train_step`",
        {"keras.distillation": "DistillationLoss Distiller FeatureDistillation LogitsDistillation"},
    ),
    ("A layer's `dtype` is its `DTypePolicy`", {"keras.dtype_policies": "DTypePolicyMap"}),
    ("`Model.export` writes ONNX", {"keras.export": "ExportArchive"}),
    (
        "`tree.map_structure` and `tree.flatten` are there",
        {
            "keras.tree": "MAP_TO_NONE assert_same_paths assert_same_structure flatten_with_path lists_to_tuples "
            "map_structure_up_to traverse"
        },
    ),
    (
        "Pictures are other packages', such as Matplotlib",
        {
            "keras.visualization": "draw_bounding_boxes draw_segmentation_masks plot_bounding_box_gallery "
            "plot_image_gallery plot_segmentation_mask_gallery"
        },
    ),
    (
        "Estimators of scikit-learn are a few lines around `Model.fit` and `Model.predict`",
        {"keras.wrappers": "SKLearnClassifier SKLearnRegressor SKLearnTransformer"},
    ),
    (
        "They run other frameworks, or need their libraries",
        {
            "keras.callbacks": "OrbaxCheckpoint",
            "keras.layers": "FlaxLayer JaxLayer TorchModuleWrapper",
        },
    ),
    (
        "A graph of TensorFlow runs on TensorFlow alone: `keras.models.load_model` reads `.keras` files, and "
        "`interchange.onnx` ONNX",
        {"keras.layers": "TFSMLayer"},
    ),
    (
        "`distribution.SpatialParallel` and `DataParallel` divide the work, and `SpatialParallel(columns=...)` cuts "
        "dense layers by their names; layouts of any variable are not planned",
        {"keras.distribution": "LayoutMap ModelParallel TensorLayout distribute_tensor"},
    ),
    (
        "A step of one's own (`train_step`) takes several optimizers",
        {"keras.optimizers": "MultiOptimizer OptimizerMap"},
    ),
    (
        "A plan decides what it computes again in backward: `Model.fit` under a `memory_limit`",
        {"keras": "RematScope remat"},
    ),
    (
        "They are for backends whose functions have no state; here `function` and `GradientTape` trace code, and a "
        "`Model` of inputs and outputs is what `Function` is",
        {"keras": "Function StatelessScope SymbolicScope name_scope"},
    ),
    (
        "Boxes are changed with their images; detectors and their measures are other packages'",
        {
            "keras.utils.bounding_boxes": "affine_transform compute_ciou compute_iou decode_deltas_to_boxes "
            "encode_box_to_deltas"
        },
    ),
    ("Settings of scripts are not what this is about", {"keras.utils": "Config"}),
)


def reason(module: str, name: str) -> str | None:
    """Why there is no such name in a module of Keras ("layers", "keras.layers"); None where no reason is known."""
    words = [word for word in module.split(".") if word not in ("keras", "pydtconv", "tensorflow", "tf_keras")]
    place = ".".join(["keras", *words])
    for text, names in REASONS:
        if (
            any(name in listed.split() for where, listed in names.items() if where == place)
            or f"{place}.{name}" in names
        ):
            return text.replace("`", "")
    return None
