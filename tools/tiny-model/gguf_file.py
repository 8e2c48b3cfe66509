"""GGUF files: read one into entries and tensors, and lay them out as bytes again.

Only what fermata-tiny uses: version 3, little-endian, alignment 32, tensors of F32, F16 and Q8_0.
Needs nothing beyond the standard library.
"""

import enum
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_MAGIC, _VERSION, _ALIGNMENT = b"GGUF", 3, 32


class GgufError(Exception):
    """The bytes are not a GGUF file, or one with features that are not supported here."""


class ValueType(enum.IntEnum):
    """Types of metadata values."""

    U32 = 4
    I32 = 5
    F32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9


class TensorType(enum.IntEnum):
    """Types of tensor data."""

    F32 = 0
    F16 = 1
    Q8_0 = 8


_SCALAR_FORMATS = {
    ValueType.U32: "<I",
    ValueType.I32: "<i",
    ValueType.F32: "<f",
    ValueType.BOOL: "<?",
}
_BLOCK_ELEMENTS = {TensorType.F32: 1, TensorType.F16: 1, TensorType.Q8_0: 32}
_BLOCK_BYTES = {TensorType.F32: 4, TensorType.F16: 2, TensorType.Q8_0: 34}


class Entry(NamedTuple):
    """One metadata value; arrays have an element type, and only they."""

    key: str
    type: ValueType
    value: Any
    element_type: ValueType | None = None


@dataclass(frozen=True)
class Tensor:
    """A tensor's name, shape (fastest dimension last, as numpy has it), type and bytes."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    data: bytes

    def __post_init__(self) -> None:
        assert len(self.data) == tensor_bytes(self.shape, self.type), self.name


@dataclass(frozen=True)
class GgufFile:
    """The content of a file, in its order."""

    entries: list[Entry]
    tensors: list[Tensor]

    def metadata(self) -> dict[str, Any]:
        """The values by key."""
        return {entry.key: entry.value for entry in self.entries}


def tensor_bytes(shape: tuple[int, ...], tensor_type: TensorType) -> int:
    """How many bytes the data of such a tensor has."""
    blocks, rest = divmod(math.prod(shape), _BLOCK_ELEMENTS[tensor_type])
    assert rest == 0
    return blocks * _BLOCK_BYTES[tensor_type]


def _padding(length: int) -> bytes:
    return b"\0" * (-length % _ALIGNMENT)


def _encode_string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _encode_value(value_type: ValueType, value: Any) -> bytes:
    if value_type == ValueType.STRING:
        return _encode_string(value)
    return struct.pack(_SCALAR_FORMATS[value_type], value)


def _encode_entry(entry: Entry) -> bytes:
    head = _encode_string(entry.key) + struct.pack("<I", entry.type)
    if entry.element_type is None:
        return head + _encode_value(entry.type, entry.value)
    head += struct.pack("<IQ", entry.element_type, len(entry.value))
    return head + b"".join(_encode_value(entry.element_type, item) for item in entry.value)


def encode(content: GgufFile) -> bytes:
    """The bytes of a file with this content."""
    infos, blobs, offset = [], [], 0
    for tensor in content.tensors:
        dimensions = tensor.shape[::-1]
        infos.append(
            _encode_string(tensor.name)
            + struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
            + struct.pack("<IQ", tensor.type, offset)
        )
        blobs.append(tensor.data + _padding(len(tensor.data)))
        offset += len(blobs[-1])
    counts = struct.pack("<IQQ", _VERSION, len(content.tensors), len(content.entries))
    entries = b"".join(_encode_entry(entry) for entry in content.entries)
    head = _MAGIC + counts + entries + b"".join(infos)
    return head + _padding(len(head)) + b"".join(blobs)


class _Reader:
    """A position in the bytes of a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def take(self, length: int) -> bytes:
        """The next bytes."""
        start, self.position = self.position, self.position + length
        if self.position > len(self._data):
            raise GgufError(f"the file ends at byte {len(self._data)}, inside a value")
        return self._data[start : self.position]

    def scalar(self, layout: str) -> Any:
        """One value of a struct format."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def string(self) -> str:
        """A string after its length."""
        return self.take(self.scalar("<Q")).decode()

    def value_type(self) -> ValueType:
        """The type of a metadata value."""
        return ValueType(self.scalar("<I"))

    def value(self, value_type: ValueType) -> Any:
        """A value that is no array."""
        if value_type == ValueType.STRING:
            return self.string()
        return self.scalar(_SCALAR_FORMATS[value_type])

    def entry(self) -> Entry:
        """A metadata entry."""
        key, value_type = self.string(), self.value_type()
        if value_type != ValueType.ARRAY:
            return Entry(key, value_type, self.value(value_type))
        element_type, length = self.value_type(), self.scalar("<Q")
        values = [self.value(element_type) for _ in range(length)]
        return Entry(key, value_type, values, element_type)

    def tensor_info(self) -> tuple[str, tuple[int, ...], TensorType, int]:
        """Name, shape, type and offset of a tensor."""
        name, dimension_count = self.string(), self.scalar("<I")
        dimensions = tuple(self.scalar("<Q") for _ in range(dimension_count))
        return name, dimensions[::-1], TensorType(self.scalar("<I")), self.scalar("<Q")


def decode(data: bytes) -> GgufFile:
    """The content of a file. Raises GgufError."""
    reader = _Reader(data)
    if reader.take(len(_MAGIC)) != _MAGIC or reader.scalar("<I") != _VERSION:
        raise GgufError(f"not a GGUF file of version {_VERSION}")
    tensor_count, entry_count = reader.scalar("<Q"), reader.scalar("<Q")
    try:
        entries = [reader.entry() for _ in range(entry_count)]
        infos = [reader.tensor_info() for _ in range(tensor_count)]
    except (KeyError, ValueError) as error:
        raise GgufError(f"unsupported type or damaged text: {error}") from error
    reader.take(-reader.position % _ALIGNMENT)
    base = reader.position
    tensors = []
    for name, shape, tensor_type, offset in infos:
        reader.position = base + offset
        tensor_data = reader.take(tensor_bytes(shape, tensor_type))
        tensors.append(Tensor(name, shape, tensor_type, tensor_data))
    return GgufFile(entries, tensors)


def read(path: Path) -> GgufFile:
    """The content of the file at a path. Raises GgufError, OSError."""
    return decode(path.read_bytes())
