"""Files of weights as others write them."""

import json
import struct
import zipfile


def write_safetensors(path, tensors):
    header, place = {"__metadata__": {"format": "pt"}}, 0
    kinds = {"float32": "F32", "int64": "I64", "float16": "F16"}
    for name, x in tensors.items():
        header[name] = {"dtype": kinds[x.dtype.name], "shape": list(x.shape), "data_offsets": [place, place + x.nbytes]}
        place += x.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(x.tobytes() for x in tensors.values()))


def pickled(path, data, **members):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", data)
        for name, value in members.items():
            archive.writestr(f"net/data/{name}", value)
