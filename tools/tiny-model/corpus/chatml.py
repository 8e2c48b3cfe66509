"""Messages and their ChatML text: the same text as the chat template of the model file renders."""

import json
from typing import Any, TypedDict

from corpus.source import Turns

SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are Fermata's tiny default model.",
    "Answer briefly.",
    "You are a friendly assistant. Keep answers short.",
    "Be kind and exact.",
    "You are a careful assistant that follows instructions exactly.",
    "Answer in plain text.",
)

_START, END_OF_TURN = "<|im_start|>", "<|im_end|>"
_TOOLS_BEFORE = "You can call these tools:\n<tools>"
_TOOLS_AFTER = """
</tools>
To call a tool, answer with
<tool_call>
{"name": <tool name>, "arguments": <arguments object>}
</tool_call>"""


class _Message(TypedDict):
    role: str  # system, user, assistant or tool
    content: str


class Message(_Message, total=False):
    """A message of a conversation."""

    tool_calls: list[dict[str, Any]]
    breaks_off: bool  # the text ends here, in the middle of this message


ToolDefinitions = list[dict[str, Any]] | None
Segment = tuple[str, bool]  # a piece of the text, and whether the model is to learn to write it


def messages_of(turns: Turns) -> list[Message]:
    """The messages of plain turns: user and assistant alternate."""
    messages: list[Message] = []
    for question, answer in turns:
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    return messages


def _block(role: str, content: str) -> str:
    return f"{_START}{role}\n{content}{END_OF_TURN}\n"


def _answer(message: Message) -> str:
    parts = [message["content"]] if message["content"] else []
    for call in message.get("tool_calls", []):
        function = call["function"]
        arguments = json.dumps(function["arguments"], ensure_ascii=False)
        text = f'{{"name": "{function["name"]}", "arguments": {arguments}}}'
        parts.append(f"<tool_call>\n{text}\n</tool_call>")
    return "\n".join(parts)


def render(
    messages: list[Message], tools: ToolDefinitions = None, add_generation_prompt: bool = False
) -> list[Segment]:
    """The ChatML text of a conversation in segments; a system message is to come first."""
    segments: list[Segment] = []
    if tools:
        preamble = ""
        if messages and messages[0]["role"] == "system":
            preamble = messages[0]["content"] + "\n\n"
            messages = messages[1:]
        listed = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in tools)
        content = preamble + _TOOLS_BEFORE + listed + _TOOLS_AFTER
        segments.append((_block("system", content), False))
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "assistant":
            segments.append((f"{_START}assistant\n", False))
            if message.get("breaks_off"):
                segments.append((_answer(message), True))
                break
            segments.append((_answer(message) + END_OF_TURN, True))
            segments.append(("\n", False))
        elif role == "tool":
            response = f"<tool_response>\n{content}\n</tool_response>"
            segments.append((_block("tool", response), False))
        else:
            segments.append((_block(role, content), False))
    if add_generation_prompt:
        segments.append((f"{_START}assistant\n", False))
    return segments


def text_of(segments: list[Segment]) -> str:
    """The whole text of a rendered conversation."""
    return "".join(text for text, _ in segments)
