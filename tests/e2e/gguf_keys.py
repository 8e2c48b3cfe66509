"""Adds keys to a copy of a GGUF file: a model with another vocabulary, the weights as they are."""

import struct
from pathlib import Path

U32 = 4
STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
ALIGNMENT = 32


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def skip_string(self) -> None:
        length = self.number("Q")
        self.at += length

    def skip_value(self, kind: int) -> None:
        if kind == STRING:
            self.skip_string()
        elif kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip_value(inner)
        else:
            self.at += SIZES[kind]


def with_numbers(source: Path, target: Path, keys: dict[str, int]) -> Path:
    """`source` with more 32-bit keys, none of which it has. Its alignment is the usual one."""
    data = source.read_bytes()
    reader = Reader(data)
    assert data[:4] == b"GGUF" and b"general.alignment" not in data[:4096]
    reader.at = 4
    version, n_tensors, n_keys = reader.number("I"), reader.number("Q"), reader.number("Q")
    keys_begin = reader.at
    for _ in range(n_keys):
        reader.skip_string()
        reader.skip_value(reader.number("I"))
    keys_end = reader.at
    for _ in range(n_tensors):
        reader.skip_string()
        dimensions = reader.number("I")
        reader.at += 8 * dimensions + 4 + 8
    infos_end = reader.at
    more = b"".join(struct.pack("<Q", len(key)) + key.encode() + struct.pack("<II", U32, value)
                    for key, value in keys.items())
    head = b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_keys + len(keys))
    head += data[keys_begin:keys_end] + more + data[keys_end:infos_end]
    padding = -len(head) % ALIGNMENT
    weights = infos_end + -infos_end % ALIGNMENT
    target.write_bytes(head + b"\0" * padding + data[weights:])
    return target
