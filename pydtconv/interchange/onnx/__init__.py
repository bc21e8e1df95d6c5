"""ONNX files: `exporter` writes a model, `importer` reads one; each has rows of a table for the operators."""
