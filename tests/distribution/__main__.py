"""Runs a program of this folder: `python -m tests.distribution MODULE[:FUNCTION] ARGUMENTS` calls its `main`."""

import importlib
import sys

sys.argv = sys.argv[1:]
module, _, function = sys.argv[0].partition(":")
getattr(importlib.import_module(f"tests.distribution.{module}"), function or "main")(*sys.argv[1:])
