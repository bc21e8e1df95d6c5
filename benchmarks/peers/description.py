"""A network of ours as plain data, from which a peer builds the same one without loading pydtconv."""

from __future__ import annotations

from typing import Any


def describe(model: Any) -> dict[str, Any]:
    """The layers of a functional or sequential model with one output, in order, as JSON can hold them.

    Each has its class ("kind"), name, config and the names of the layers whose outputs it reads ("inputs"),
    "input_shape", of the first of them, where the layer notes it, and "arguments", of an operator after its first one.
    Sequential models inside stand as their layers.
    """
    layers: list[dict[str, Any]] = []
    last: dict[str, str] = {}  # the last layer of a model inside, by the model's name
    for layer in model.get_config()["layers"]:
        name = layer["config"]["name"]
        chain = [layers[-1]["name"]] if layers else []  # a sequential model notes no sources
        inputs = _sources(layer["inbound_nodes"]) if "inbound_nodes" in layer else chain
        inputs = [last.get(source, source) for source in inputs]
        for part in layer["config"]["layers"][1:] if layer["class_name"] == "Sequential" else [layer]:
            layers.append({
                "kind": part["class_name"],
                "name": part["config"]["name"],
                "config": part["config"],
                "inputs": inputs,
                "input_shape": _shape(part.get("build_config", {})),
                "arguments": _arguments(part.get("inbound_nodes")),
            })  # fmt: skip
            inputs = [layers[-1]["name"]]
        last[name] = layers[-1]["name"]
    return {"name": model.name, "layers": layers, "output": layers[-1]["name"]}


def _arguments(nodes: Any) -> list[Any]:
    return [list(value) if isinstance(value, tuple) else value for value in nodes[0]["args"][1:]] if nodes else []


def _shape(config: dict[str, Any]) -> Any:
    """The shape of a layer's first input, where it notes one."""
    return config.get("input_shape") or config.get("shapes_dict", {}).get("query_shape")


def _sources(value: Any) -> list[str]:
    """Names of the layers behind the tensors somewhere in a layer's inbound nodes."""
    if isinstance(value, dict):
        if value.get("class_name") == "__keras_tensor__":
            return [value["config"]["keras_history"][0]]
        return [name for item in value.values() for name in _sources(item)]
    if isinstance(value, list):
        return [name for item in value for name in _sources(item)]
    return []
