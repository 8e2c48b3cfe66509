"""Seeded generator of synthetic conversations, on which fermata-tiny is trained.

All word lists and templates were written for this project. The same seed and mix give the same
text on every machine (Python 3.11).

    source = Source(random.Random(7), MIXES[1])
    text = text_of(render(*conversation(source)))
"""

from corpus.chatml import render, text_of
from corpus.conversation import conversation
from corpus.source import MIXES, Source, is_held_out

__all__ = ["MIXES", "Source", "conversation", "is_held_out", "render", "text_of"]
