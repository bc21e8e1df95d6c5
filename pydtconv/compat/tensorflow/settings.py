"""`tf.config`: there is one device, the CPU; what chooses others or their memory means nothing."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from pydtconv.loops.function import _all_eager, run_functions_eagerly


class PhysicalDevice(NamedTuple):
    """A device."""

    name: str
    device_type: str


_CPU = (PhysicalDevice("/physical_device:CPU:0", "CPU"), PhysicalDevice("/device:CPU:0", "CPU"))


def _devices(device: PhysicalDevice) -> Any:
    def devices(device_type: str | None = None) -> list[PhysicalDevice]:
        return [device] if device_type in (None, "CPU") else []

    return devices


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What means nothing here."""


def _none(*args: Any, **kwargs: Any) -> bool:
    return False


class LogicalDeviceConfiguration:
    """How much of a device a script wants: all of it is there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what is asked for."""


def table() -> dict[str, Any]:
    """The names of `tf.config`.  Results do not depend on threads, so that determinism needs no switch."""
    nothing = (
        "set_visible_devices", "experimental_connect_to_cluster", "experimental_connect_to_host",
        "set_logical_device_configuration", "set_soft_device_placement",
    )  # fmt: skip
    return {
        "PhysicalDevice": PhysicalDevice,
        "LogicalDevice": PhysicalDevice,
        "LogicalDeviceConfiguration": LogicalDeviceConfiguration,
        "list_physical_devices": _devices(_CPU[0]),
        "get_visible_devices": _devices(_CPU[0]),
        "list_logical_devices": _devices(_CPU[1]),
        "get_logical_device_configuration": lambda device: None,
        "get_soft_device_placement": lambda: True,
        "run_functions_eagerly": run_functions_eagerly,
        "functions_run_eagerly": lambda: _all_eager[0],
        "experimental_run_functions_eagerly": run_functions_eagerly,
        "experimental_functions_run_eagerly": lambda: _all_eager[0],
        **dict.fromkeys(nothing, _nothing),
    }


def experimental() -> dict[str, Any]:
    """The names of `tf.config.experimental`."""
    nothing = (
        "set_memory_growth", "enable_op_determinism", "enable_tensor_float_32_execution", "enable_mlir_bridge",
        "disable_mlir_bridge", "reset_memory_stats", "set_device_policy", "set_synchronous_execution",
        "set_virtual_device_configuration",
    )  # fmt: skip
    same = "list_physical_devices", "list_logical_devices", "get_visible_devices", "set_visible_devices"
    whole = table()
    return {
        **{name: whole[name] for name in same},
        **dict.fromkeys(nothing, _nothing),
        **dict.fromkeys(("get_memory_growth", "tensor_float_32_execution_enabled"), _none),
        "VirtualDeviceConfiguration": LogicalDeviceConfiguration,
        "get_virtual_device_configuration": whole["get_logical_device_configuration"],
        "get_synchronous_execution": lambda: True,
        "get_device_policy": lambda: "silent",
        "get_device_details": lambda device: {},
    }


def threading() -> dict[str, Any]:
    """The names of `tf.config.threading`: OMP_NUM_THREADS says how many threads there are."""
    counts = dict.fromkeys(
        ("get_inter_op_parallelism_threads", "get_intra_op_parallelism_threads"),
        lambda: int(os.environ.get("OMP_NUM_THREADS") or 0),
    )
    return counts | dict.fromkeys(("set_inter_op_parallelism_threads", "set_intra_op_parallelism_threads"), _nothing)


def optimizer() -> dict[str, Any]:
    """The names of `tf.config.optimizer`: steps are compiled always."""
    return {
        **dict.fromkeys(("set_jit", "set_experimental_options"), _nothing),
        "get_jit": lambda: "",
        "get_experimental_options": dict,
    }
