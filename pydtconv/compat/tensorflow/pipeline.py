"""`Pipeline`: elements that are made anew by each iteration, with what is known of them before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn

import numpy as np

from pydtconv import tree
from pydtconv.compat.tensorflow import refused
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.dtypes import as_dtype
from pydtconv.compat.tensorflow.specs import Shape, TensorSpec
from pydtconv.suggest import missing

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def lacking(cls: type, name: str) -> str:
    """What to say of a method that a data set has not."""
    names = [each for each in dir(cls) if each[0] != "_"]
    return missing("tf.data.Dataset", name, names, refused.reason("tensorflow.data.Dataset", name, names))


class Named(type):
    """A class that says what there is instead of a missing attribute."""

    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(lacking(cls, name))


class Elements:
    """The iterator of a data set."""

    def __init__(self, source: Iterator[Any], dataset: Any) -> None:
        self._source, self._dataset = source, dataset

    def __iter__(self) -> Elements:
        return self

    def __next__(self) -> Any:
        return next(self._source)

    get_next = next = __next__

    @property
    def element_spec(self) -> Any:
        """The specs of the elements."""
        return self._dataset.element_spec


class Pipeline(metaclass=Named):
    """Base of `Dataset`.

    make: gives an iterator over the elements.  count: how many, -1 without end, -2 where that is not known.
    like: the data set whose elements have the same shapes and dtypes.
    example: gives an element, by default the first one; spec: gives the specs of elements from that of the example.
    """

    #: the class of data sets
    dataset: ClassVar[Any]

    def __init__(
        self,
        make: Callable[[], Iterator[Any]],
        count: int = UNKNOWN_CARDINALITY,
        like: Pipeline | None = None,
        example: Callable[[], Any] | None = None,
        spec: Callable[[], Any] | None = None,
    ) -> None:
        self._example: Callable[[], Any]
        self._spec: Callable[[], Any]
        self._make = make
        self._count = count
        self._example = like._example if like is not None else example or (lambda: next(iter(make())))
        self._spec = like._spec if like is not None else spec or (lambda: specs_of(self._example()))
        self._options: Any = None

    def __iter__(self) -> Iterator[Any]:
        return Elements(self._make(), self)

    def __len__(self) -> int:
        if self._count == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if self._count == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return self._count

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if isinstance(found := getattr(type(self), name, None), property):
            return found.__get__(self)  # the property's own error, which brought us here
        raise AttributeError(lacking(type(self), name))

    @property
    def num_batches(self) -> int | None:
        """What `fit` takes for the batches of an epoch; None where that is not known."""
        return self._count if self._count >= 0 else None

    def cardinality(self) -> Any:
        """The number of elements; -1 where there is no end, -2 where it is not known."""
        return array(self._count, "int64")

    @property
    def element_spec(self) -> Any:
        """The specs of the elements.

        Where functions make them, one element is made, and extents that come from a batch of any size are open.
        """
        return self._spec()

    def __repr__(self) -> str:
        try:
            told = repr(self.element_spec)
        except StopIteration:
            told = "of no element"
        except Exception as error:
            told = f"not known: {error!r}"
        return f"<{type(self).__name__} element_spec={told}>"


def specs_of(element: Any) -> Any:
    """The specs of an element's parts; a data set in it, as of `window`, stands for itself."""
    return tree.map_structure(
        lambda x: x if isinstance(x, Pipeline) else TensorSpec(x.shape, as_dtype(x.dtype)), element
    )


def with_axis(spec: Any, extent: int | None) -> Any:
    """Specs of batches of elements."""
    return mapped_specs(lambda each: Shape([extent]).concatenate(each.shape), spec)


def without_axis(spec: Any) -> Any:
    """Specs of the parts of batches."""
    return mapped_specs(lambda each: each.shape[1:] if each.shape.rank is not None else None, spec)


def mapped_specs(shape: Callable[[TensorSpec], Any], spec: Any) -> Any:
    """Specs with other shapes."""

    def changed(each: Any) -> Any:
        found = shape(each) if isinstance(each, TensorSpec) else None
        if found is None or found.rank is None:
            return TensorSpec(None, each.dtype) if isinstance(each, TensorSpec) else each
        return TensorSpec(found, each.dtype)

    return tree.map_structure(changed, spec)


def open_as(source: Any, example: Any, result: Any) -> Any:
    """The specs of what a function makes of an example, whose first extents may be open in the source's specs."""
    sources = [each for each in tree.flatten(source) if isinstance(each, TensorSpec)]
    free = bool(sources) and all(each.shape.rank and each.shape[0] is None for each in sources)
    sizes = {len(x) for x in tree.flatten(example) if np.ndim(x)} if free else set()

    def shape(each: TensorSpec) -> Shape:
        return Shape([None, *each.shape[1:]]) if each.shape and each.shape[0] in sizes else each.shape

    return mapped_specs(shape, specs_of(result))
