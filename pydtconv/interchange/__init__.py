"""Models and weights in the formats of others.

onnx_package.py   the package `onnx` where it is installed, and what is to be said where it is not
onnx_writer.py    values, layouts and nodes of an ONNX graph that is being written
onnx_export.py    the table from our operators to ONNX's, and `export_onnx`
onnx_operators.py, onnx_places.py, onnx_functions.py   its rows
onnx_reader.py    ONNX files from others, with every size looked at first
onnx_call.py      what rows of the table from ONNX to ours are given; onnx_constants.py: nodes without inputs
onnx_import.py    `read_onnx`; onnx_import_layers.py, onnx_import_functions.py, onnx_import_places.py: the rows
safetensors.py, torch_files.py   tensors by name of two kinds of files, read without their libraries
named_weights.py  whose names they are, and to which layers they belong
"""
