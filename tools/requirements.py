"""Prints what pyproject.toml asks for, with the extras that are named; --lowest: the lowest version of each."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
lowest = "--lowest" in sys.argv
extras = [project["optional-dependencies"][extra] for extra in sys.argv[1:] if extra != "--lowest"]
for requirement in dict.fromkeys(sum(extras, project["dependencies"])):
    print(requirement.replace(">=", "==") if lowest else requirement)
