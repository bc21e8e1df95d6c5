"""Models: Model (subclassed or functional), Sequential, and what makes, copies and reads them.

These are the classes.  The networks that are made of them (ResNets, VGG, ...) are in the folder `models/` at the top of
the repository, which is installed as `pydtconv.applications`.
"""

from pydtconv.models.cloning import clone_model, model_from_json
from pydtconv.models.model import Functional, Model
from pydtconv.models.model_files import load_model, save_model
from pydtconv.models.sequential import Sequential
from pydtconv.suggest import refusal

__all__ = ["Functional", "Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]

__getattr__ = refusal(__name__, __all__)
