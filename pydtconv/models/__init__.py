"""Models: Model (subclassed or functional), Sequential, and what makes, copies and reads them."""

from pydtconv.models.config import clone_model, model_from_json
from pydtconv.models.functional import Functional
from pydtconv.models.model import Model
from pydtconv.models.model_files import load_model, save_model
from pydtconv.models.sequential import Sequential
from pydtconv.utils.suggest import refusal

__all__ = ["Functional", "Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]

__getattr__ = refusal(__name__, __all__)
