"""What the model is: its numbers, its chat template, and the metadata of its file."""

from dataclasses import dataclass

from gguf_file import Entry, TensorType, ValueType
from tokenizer import CONTROL_TOKENS, END_OF_TEXT, END_OF_TURN, USER_TOKENS, Tokenizer

HEAD_SIZE = 32
CONTEXT_TOKENS = 8192
ROPE_BASE = 100_000.0
RMS_EPSILON = 1e-5

_FILE_TYPES = {TensorType.F16: 1, TensorType.Q8_0: 7}
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4  # token types


@dataclass(frozen=True)
class ModelSpec:
    """The shape of the network: Llama architecture with tied embeddings."""

    vocabulary: int
    width: int = 160
    layers: int = 6
    feed_forward: int = 384
    heads: int = 4
    kv_heads: int = 2


# The same text as corpus.render gives.
CHAT_TEMPLATE = (
    r"""{%- if tools -%}
{{- '<|im_start|>system\n' -}}
{%- if messages[0].role == 'system' -%}{{- messages[0].content + '\n\n' -}}{%- endif -%}
{{- 'You can call these tools:\n<tools>' -}}
{%- for tool in tools -%}{{- '\n' -}}{{- tool | tojson -}}{%- endfor -%}
{{- '\n</tools>\nTo call a tool, answer with\n<tool_call>\n"""
    r"""{"name": <tool name>, "arguments": <arguments object>}\n</tool_call><|im_end|>\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- if not (tools and loop.first) -%}"""
    r"""{{- '<|im_start|>system\n' + message.content + '<|im_end|>\n' -}}{%- endif -%}
{%- elif message.role == 'tool' -%}
{{- '<|im_start|>tool\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' -}}
{%- elif message.role == 'assistant' -%}
{{- '<|im_start|>assistant\n' -}}
{%- if message.content -%}{{- message.content -}}{%- endif -%}
{%- if message.tool_calls -%}
{%- for call in message.tool_calls -%}
{%- if message.content or not loop.first -%}{{- '\n' -}}{%- endif -%}
{%- set fn = call.function if call.function else call -%}
{{- '<tool_call>\n{"name": "' + fn.name + '", "arguments": ' -}}
"""
    r"""{%- if fn.arguments is string -%}{{- fn.arguments -}}{%- else -%}"""
    r"""{{- fn.arguments | tojson -}}{%- endif -%}
{{- '}\n</tool_call>' -}}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- else -%}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"""
)


def _text(key: str, value: str) -> Entry:
    return Entry(key, ValueType.STRING, value)


def _number(key: str, value: int) -> Entry:
    return Entry(key, ValueType.U32, value)


def _token_type(token: str) -> int:
    if token in CONTROL_TOKENS:
        return _CONTROL
    return _USER_DEFINED if token in USER_TOKENS else _NORMAL


def _general(parameter_count: int, matrix_type: TensorType) -> list[Entry]:
    description = "Tiny chat model trained from scratch on synthetic text, for tests and first runs"
    return [
        _text("general.architecture", "llama"),
        _text("general.type", "model"),
        _text("general.name", "fermata-tiny"),
        _text("general.description", description),
        _text("general.license", "mit"),
        _text("general.size_label", f"{parameter_count / 1e6:.1f}M"),
        _number("general.file_type", _FILE_TYPES[matrix_type]),
        _number("general.quantization_version", 2),
    ]


def _architecture(spec: ModelSpec) -> list[Entry]:
    return [
        _number("llama.context_length", CONTEXT_TOKENS),
        _number("llama.embedding_length", spec.width),
        _number("llama.block_count", spec.layers),
        _number("llama.feed_forward_length", spec.feed_forward),
        _number("llama.attention.head_count", spec.heads),
        _number("llama.attention.head_count_kv", spec.kv_heads),
        _number("llama.attention.key_length", HEAD_SIZE),
        _number("llama.attention.value_length", HEAD_SIZE),
        Entry("llama.attention.layer_norm_rms_epsilon", ValueType.F32, RMS_EPSILON),
        _number("llama.rope.dimension_count", HEAD_SIZE),
        Entry("llama.rope.freq_base", ValueType.F32, ROPE_BASE),
        _number("llama.vocab_size", spec.vocabulary),
    ]


def _vocabulary(tokenizer: Tokenizer) -> list[Entry]:
    merges = [" ".join(merge) for merge in tokenizer.merges]
    types = [_token_type(token) for token in tokenizer.tokens]
    end_of_text = tokenizer.id_of[END_OF_TEXT]
    end_of_turn = tokenizer.id_of[END_OF_TURN]
    array = ValueType.ARRAY
    return [
        _text("tokenizer.ggml.model", "gpt2"),
        _text("tokenizer.ggml.pre", "qwen2"),
        Entry("tokenizer.ggml.tokens", array, tokenizer.tokens, ValueType.STRING),
        Entry("tokenizer.ggml.token_type", array, types, ValueType.I32),
        Entry("tokenizer.ggml.merges", array, merges, ValueType.STRING),
        _number("tokenizer.ggml.bos_token_id", end_of_text),
        _number("tokenizer.ggml.eos_token_id", end_of_turn),
        _number("tokenizer.ggml.eot_token_id", end_of_turn),
        _number("tokenizer.ggml.padding_token_id", end_of_text),
        Entry("tokenizer.ggml.add_bos_token", ValueType.BOOL, False),
        _text("tokenizer.chat_template", CHAT_TEMPLATE),
    ]


def metadata(
    spec: ModelSpec, tokenizer: Tokenizer, parameter_count: int, matrix_type: TensorType
) -> list[Entry]:
    """All metadata of a model file whose matrices have this type."""
    return [
        *_general(parameter_count, matrix_type),
        *_architecture(spec),
        *_vocabulary(tokenizer),
    ]
