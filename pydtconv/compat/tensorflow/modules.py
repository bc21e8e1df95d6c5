"""`tf.Module`, and `tf.train`'s checkpoints: the variables of objects in a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.compat import patches
from pydtconv.files.whole_file import write_whole
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.base.layer import Layer
from pydtconv.optimizers import Optimizer
from pydtconv.support.uninterrupted import uninterrupted


class Module:
    """What holds variables: as attributes, and in other modules, layers, lists and dicts that are attributes."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The name of the module."""
        return self.__dict__.get("_name") or type(self).__name__.lower()

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, each once."""
        found = {id(each): each for value in _attributes(self) for each in variables_of(value)}
        return tuple(found.values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that are trained."""
        return tuple(each for each in self.variables if each.trainable)

    @property
    def submodules(self) -> tuple[Any, ...]:
        """The modules in this one."""
        inner = [each for value in _attributes(self) for each in _modules(value)]
        return tuple({id(each): each for one in inner for each in (one, *getattr(one, "submodules", ()))}.values())


def _attributes(module: Module) -> Iterator[Any]:
    return (value for _, value in sorted(vars(module).items()))


def _modules(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _modules(each)
    elif isinstance(value, Module):
        yield value


def variables_of(value: Any) -> list[Variable]:
    """The variables of a variable, a layer, a module, an optimizer, and of lists and dicts of them."""
    if isinstance(value, Variable):
        return [value]
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in variables_of(each)]
    if isinstance(value, dict):
        return [found for each in value.values() for found in variables_of(each)]
    found = getattr(value, "variables", None)
    return list(found) if isinstance(found, (list, tuple)) else []


@dataclass(eq=False)
class Waiting:
    """Values that a checkpoint has of an object that has not all of its variables yet."""

    name: str
    path: str
    held: Any
    values: list[np.ndarray]

    def check(self, variables: list[Variable]) -> bool:
        """Whether all variables are there.  Raises ValueError for others than the values are of."""
        if len(variables) > len(self.values):
            raise ValueError(
                f"Checkpoint.read: {self.name}: expected the {len(self.values)} variables of {self.path}, got "
                f"{len(variables)}"
            )
        if len(variables) < len(self.values):
            return False
        for variable, value in zip(variables, self.values, strict=True):
            if tuple(variable.shape) != value.shape:
                raise ValueError(
                    f"Checkpoint.read: {variable.name}: expected {tuple(variable.shape)}, got {value.shape}"
                )
        return True


#: what is assigned when the last variable of its object is made
_waiting: list[Waiting] = []


def made() -> None:
    """Assigns what waited for variables that are there now; called where variables are made."""
    for each in list(_waiting):
        variables = variables_of(each.held)
        if each.check(variables):
            _waiting.remove(each)
            with tracing.paused():  # a layer may be built while code is traced
                for variable, value in zip(variables, each.values, strict=True):
                    variable.assign(value)


def _then_made(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    found = original(self, *args, **kwargs)
    if _waiting:
        made()
    return found


def _watch() -> None:
    """Has layers, optimizers and modules get the values that wait for their variables."""
    if vars(Module).get("__setattr__") is not None:
        return
    makers: list[tuple[Any, str]] = [(Layer, "add_weight"), (Module, "__setattr__"), (Optimizer, "build")]
    makers += [(each, "build") for each in _below(Optimizer) if "build" in vars(each)]
    for owner, name in makers:
        patches.around(owner, name, _then_made)
    patches.undo(_waiting.clear)


def _below(cls: type[Any]) -> Iterator[type[Any]]:
    for each in cls.__subclasses__():
        yield each
        yield from _below(each)


class Status:
    """What `Checkpoint.restore` gives."""

    def __init__(self, waiting: Sequence[Waiting] = (), unread: Sequence[str] = (), unmatched: Sequence[str] = ()):
        self._given, self._unread, self._unmatched = list(waiting), list(unread), list(unmatched)

    def assert_consumed(self) -> Status:
        """Raises AssertionError where values have no variable yet, or variables had no value."""
        late = [
            f"{each.name}: {len(each.values)} values wait for variables" for each in self._given if each in _waiting
        ]
        unread = [f"{name}: nothing of this name to read it into" for name in self._unread]
        self._raise([*late, *unread])
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> Status:
        """Raises AssertionError where variables had no value in the file."""
        self._raise([f"{name}: not in the file" for name in self._unmatched])
        return self

    def expect_partial(self) -> Status:
        return self

    @staticmethod
    def _raise(found: list[str]) -> None:
        if found:
            raise AssertionError("Checkpoint.restore: " + "; ".join(found))


class Checkpoint:
    """Models, optimizers and variables by name, which are written to a file and read from it."""

    def __init__(self, root: Any = None, **objects: Any) -> None:
        self._objects = objects if root is None else {"root": root, **objects}
        self.save_counter = Variable(np.int64(0), (), "int64", False)
        for name, value in objects.items():
            setattr(self, name, value)

    def _held(self) -> dict[str, Any]:
        return {**self._objects, "save_counter": self.save_counter}

    def write(self, file_prefix: Any) -> str:
        """Writes the variables to a file of this name, and `.npz`."""
        values = {
            f"{name}/{i}": np.asarray(v)
            for name, held in self._held().items()
            for i, v in enumerate(variables_of(held))
        }
        write_whole(Path(f"{file_prefix}.npz"), lambda file: np.savez(file, **values))  # type: ignore[arg-type]
        return str(file_prefix)

    def save(self, file_prefix: Any) -> str:
        """Writes the variables to the next file of this prefix, and its name to the folder's file `checkpoint`."""
        self.save_counter.assign_add(1)
        path = self.write(f"{file_prefix}-{int(self.save_counter)}")
        name = json.dumps(Path(path).name).encode()
        write_whole(Path(path).parent / "checkpoint", lambda file: file.write(name))
        return path

    def read(self, save_path: Any) -> Status:
        """Reads the variables; values of objects that have not all variables yet wait for them.

        Raises ValueError, before any is changed, where an object has others than the file.
        """
        kept: dict[str, list[np.ndarray]] = {}
        with np.load(f"{save_path}.npz") as file:
            for key in file:  # in order of their numbers, as they were written
                kept.setdefault(key.rpartition("/")[0], []).append(file[key])
        parts = [Waiting(name, str(save_path), held, kept[name]) for name, held in self._held().items() if name in kept]
        late = [each for each in parts if not each.check(variables_of(each.held))]
        with uninterrupted():
            for each in parts:
                if each not in late:
                    for variable, value in zip(variables_of(each.held), each.values, strict=True):
                        variable.assign(value)
        _waiting[:] = [each for each in _waiting if all(each.held is not other.held for other in parts)] + late
        if late:
            _watch()
        unmatched = [name for name, held in self._held().items() if name not in kept and variables_of(held)]
        return Status(late, [name for name in kept if name not in self._held()], unmatched)

    def restore(self, save_path: Any) -> Status:
        """As `read`; nothing where there is no file, which `latest_checkpoint` tells by None."""
        return Status() if save_path is None else self.read(save_path)


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str = "checkpoint") -> str | None:
    """The last file that `Checkpoint.save` wrote into a folder; None where there is none."""
    told = Path(checkpoint_dir) / latest_filename
    return str(told.parent / json.loads(told.read_text())) if told.exists() else None


class CheckpointManager:
    """Keeps the last checkpoints in a folder."""

    def __init__(
        self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None, checkpoint_name: str = "ckpt"
    ) -> None:
        self.checkpoint, self._folder, self._kept, self._name = (
            checkpoint,
            Path(directory),
            max_to_keep,
            checkpoint_name,
        )

    @property
    def latest_checkpoint(self) -> str | None:
        """The last one; None where there is none."""
        return latest_checkpoint(self._folder)

    @property
    def checkpoints(self) -> list[str]:
        """Those that are there, the oldest one first."""
        files = [path.with_suffix("") for path in self._folder.glob(f"{self._name}-*.npz")]
        return [str(path) for path in sorted(files, key=lambda path: int(path.name.rpartition("-")[2]))]

    def save(self, checkpoint_number: int | None = None) -> str:
        """Writes one, and removes what is too many."""
        if checkpoint_number is not None:
            self.checkpoint.save_counter.assign(int(checkpoint_number) - 1)
        path = self.checkpoint.save(self._folder / self._name)
        for old in self.checkpoints[: -self._kept] if self._kept else []:
            Path(f"{old}.npz").unlink()
        return path

    def restore_or_initialize(self) -> str | None:
        """Reads the last one, where there is one."""
        self.checkpoint.restore(self.latest_checkpoint)
        return self.latest_checkpoint


def train_table() -> dict[str, Any]:
    """The names of `tf.train`."""
    own = Checkpoint, CheckpointManager, latest_checkpoint
    return {each.__name__: each for each in own}
