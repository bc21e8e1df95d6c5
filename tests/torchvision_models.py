"""torchvision's networks, where torch and torchvision are installed."""

import importlib
import importlib.util
import sys
import warnings

import pytest

_library = []


def import_torchvision():
    """The module torchvision; skips the test where it or torch is missing.

    One that was built for another torch lacks its compiled operators, which networks do not need: they are declared.
    """
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("torchvision") is None:
        pytest.skip("needs torch and torchvision")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch

        try:
            return importlib.import_module("torchvision")
        except RuntimeError:
            for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
                del sys.modules[name]
            _library.append(torch.library.Library("torchvision", "DEF"))
            for name in ("nms", "qnms"):
                _library[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            return importlib.import_module("torchvision")
