#!/usr/bin/python3
"""Write a training checkpoint as a GGUF file.

RoPE of the Llama architecture rotates neighbouring pairs (2i, 2i+1); training does the same, so no
rows change places here. Embeddings are tied: there is no output.weight.
"""

import argparse
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

import gguf_file
from gguf_file import GgufFile, Tensor, TensorType
from model_spec import HEAD_SIZE, ModelSpec, metadata
from paths import BUILD
from tokenizer import Tokenizer

Array = npt.NDArray[np.float32]

_MATRIX_TYPES = {"f16": TensorType.F16, "q8_0": TensorType.Q8_0}
_Q8_BLOCK = 32


def _q8_0(values: Array) -> bytes:
    """Blocks of 32 values: a scale as F16, then the values divided by it as signed bytes."""
    blocks = values.reshape(-1, _Q8_BLOCK)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / 127.0
    quotients = np.divide(blocks, scales, out=np.zeros_like(blocks), where=scales > 0)
    scale_bytes = scales.astype(np.float16).view(np.uint8).reshape(-1, 2)
    value_bytes = np.round(quotients).astype(np.int8).view(np.uint8)
    return cast(bytes, np.concatenate([scale_bytes, value_bytes], axis=1).tobytes())


def _tensor(name: str, values: Array, matrix_type: TensorType) -> Tensor:
    values = np.ascontiguousarray(values)
    if values.ndim == 1:
        return Tensor(name, values.shape, TensorType.F32, values.tobytes())
    if matrix_type == TensorType.F16:
        return Tensor(name, values.shape, TensorType.F16, values.astype(np.float16).tobytes())
    return Tensor(name, values.shape, TensorType.Q8_0, _q8_0(values))


def named_arrays(spec: ModelSpec, weights: dict[str, Array]) -> dict[str, Array]:
    """The weights of a checkpoint under their names in a GGUF file, in the file's order."""
    query_rows = spec.heads * HEAD_SIZE
    arrays = {
        "token_embd.weight": weights["embedding"],
        "output_norm.weight": weights["output_norm"],
    }
    for index in range(spec.layers):
        source, target = f"layers.{index}.", f"blk.{index}."
        query_key = weights[source + "query_key"]
        arrays[target + "attn_norm.weight"] = weights[source + "attention_norm"]
        arrays[target + "attn_q.weight"] = query_key[:query_rows]
        arrays[target + "attn_k.weight"] = query_key[query_rows:]
        arrays[target + "attn_v.weight"] = weights[source + "value"]
        arrays[target + "attn_output.weight"] = weights[source + "attention_output"]
        arrays[target + "ffn_norm.weight"] = weights[source + "feed_forward_norm"]
        arrays[target + "ffn_gate.weight"] = weights[source + "gate"]
        arrays[target + "ffn_up.weight"] = weights[source + "up"]
        arrays[target + "ffn_down.weight"] = weights[source + "down"]
    return arrays


def model_file(checkpoint: dict[str, Any], matrix_type: TensorType) -> GgufFile:
    """The content of the GGUF file for a checkpoint of train.py."""
    spec = ModelSpec(**checkpoint["spec"])
    weights = {name: value.float().numpy() for name, value in checkpoint["model"].items()}
    arrays = named_arrays(spec, weights)
    parameter_count = sum(values.size for values in arrays.values())
    return GgufFile(
        metadata(spec, Tokenizer(), parameter_count, matrix_type),
        [_tensor(name, values, matrix_type) for name, values in arrays.items()],
    )


def main() -> None:
    """Convert the checkpoint that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, default=BUILD / "checkpoint.pt")
    parser.add_argument("--out", type=Path, default=BUILD / "fermata-tiny.gguf")
    parser.add_argument(
        "--type", choices=sorted(_MATRIX_TYPES), default="f16", help="type of the matrices"
    )
    arguments = parser.parse_args()
    checkpoint = torch.load(arguments.checkpoint, map_location="cpu")
    data = gguf_file.encode(model_file(checkpoint, _MATRIX_TYPES[arguments.type]))
    arguments.out.write_bytes(data)
    print(f"{arguments.out}: {len(data)} bytes, from step {checkpoint['step']}")


if __name__ == "__main__":
    main()
