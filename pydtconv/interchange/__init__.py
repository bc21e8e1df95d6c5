"""Models and weights in the formats of others.

onnx/package.py   the package `onnx` where it is installed, and what is to be said where it is not
onnx/writer.py    values, layouts and nodes of an ONNX graph that is being written
onnx/exporter.py    the table from our operators to ONNX's, and `export_onnx`
onnx/export_operators.py, onnx/export_rearranging.py, onnx/export_functions.py   its rows
onnx/reader.py    ONNX files from others, with every size looked at first
onnx/call.py      what rows of the table from ONNX to ours are given; onnx/constants.py: nodes without inputs
onnx/importer.py    `read_onnx`; onnx/import_layers.py, import_recurrent.py, import_functions.py,
    import_rearranging.py: the rows
safetensors.py, torch_files.py   tensors by name of two kinds of files, read without their libraries
named_weights.py  whose names they are, and to which layers they belong
"""
