#!/usr/bin/python3
"""Train the model on the CPU, on text that the corpus makes as it is needed.

Whole conversations lie end to end in a batch; attention never crosses from one to the next. The
loss is on the assistant's tokens. The rates follow a cosine over elapsed time, so a busy machine
only means fewer steps, and no two runs are equal. train.sh sets up the environment that makes this
fast; train_all.sh holds the phases that made the model.
"""

import argparse
import dataclasses
import math
import os
import random
import time
from pathlib import Path
from typing import Any

import torch

import held_out
from corpus import MIXES, Source, conversation, render
from corpus.chatml import END_OF_TURN, Message, Segment
from model import Batch, Model
from model_spec import ModelSpec
from optimizer import Optimizer
from paths import BUILD
from tokenizer import Tokenizer

_WARM_UP_STEPS = 40
_SHORT_UNTIL = 0.12  # a fresh model sees only short conversations until this progress
_REPORT_STEPS = 20
_CHECKED_PER_CATEGORY = 10
_CHECK_BATCH = 20


def make_batch(tokenizer: Tokenizer, documents: list[list[Segment]]) -> Batch:
    """The documents as one batch; its targets are the tokens of the segments to be learned."""
    ids: list[int] = []
    starts = [0]
    positions: list[int] = []
    targets: list[int] = []
    for segments in documents:
        for text, is_learned in segments:
            tokens = tokenizer.encode(text)
            if is_learned:
                positions += range(len(ids) - 1, len(ids) - 1 + len(tokens))
                targets += tokens
            ids += tokens
        starts.append(len(ids))
    return Batch(
        torch.tensor(ids),
        torch.tensor(starts, dtype=torch.int32),
        torch.tensor(positions),
        torch.tensor(targets, dtype=torch.int32),
    )


def _characters(messages: list[Message]) -> int:
    return sum(len(message["content"]) for message in messages)


def draw_documents(source: Source, token_count: int, short_only: bool) -> list[list[Segment]]:
    """Conversations of about so many tokens, the longest first so that all threads end together."""
    drawn, estimate = [], 0
    while estimate < token_count:
        target = source.rng.randint(20, 250) if short_only else None
        messages, tools = conversation(source, target)
        drawn.append((messages, tools))
        estimate += sum(len(message["content"]) // 2 + 5 for message in messages)
    drawn.sort(key=lambda item: -_characters(item[0]))
    return [render(messages, tools) for messages, tools in drawn]


class HeldOutCheck:
    """Some cases of each category of held_out, answered token by token."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._documents: dict[str, list[list[Segment]]] = {}
        for case in held_out.cases(random.Random(held_out.DEFAULT_SEED)):
            if case.category in (held_out.FREE_JSON, held_out.SAMPLE):
                continue
            documents = self._documents.setdefault(case.category, [])
            if len(documents) < _CHECKED_PER_CATEGORY:
                documents.append([(case.prompt(), False), (case.answer + END_OF_TURN, True)])

    @torch.no_grad()
    def run(self, model: Model) -> str:
        """How many answers the model would give whole, by category."""
        results = []
        for category, documents in self._documents.items():
            right = 0
            for first in range(0, len(documents), _CHECK_BATCH):
                right += self._count_right(model, documents[first : first + _CHECK_BATCH])
            results.append(f"{category}: {right}/{len(documents)}")
        return ", ".join(results)

    def _count_right(self, model: Model, documents: list[list[Segment]]) -> int:
        batch = make_batch(self._tokenizer, documents)
        _, hits = model(batch)
        owners = torch.bucketize(batch.positions, batch.starts[1:].long(), right=True)
        wrong_owners = set(owners[hits == 0].tolist())
        return len(documents) - len(wrong_owners)


def _rate_share(step: int, progress: float) -> float:
    warm_up = min(1.0, (step + 1) / _WARM_UP_STEPS)
    return warm_up * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


def _momentum(step: int) -> float:
    return min(0.95, 0.85 + 0.1 * step / 200)


class Training:
    """One phase of training, from the command line's arguments to the checkpoint."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._tokenizer = Tokenizer()
        self._source = Source(random.Random(arguments.seed), MIXES[arguments.mix])
        self._model = self._make_model()
        self._optimizer = Optimizer(
            self._model, arguments.muon_rate, arguments.adam_rate, arguments.weight_decay
        )
        self._check = HeldOutCheck(self._tokenizer)
        self._started = self._checked = time.monotonic()
        self._tokens = 0
        self._mean_loss: float | None = None

    def run(self) -> None:
        """Train until the time or the steps are used up."""
        arguments = self._arguments
        parameter_count = sum(parameter.numel() for parameter in self._model.parameters())
        print(f"{parameter_count} parameters", flush=True)
        step = 0
        while step < arguments.steps_max and self._elapsed() < arguments.minutes * 60:
            self._step(step)
            step += 1
            if step % _REPORT_STEPS == 0:
                self._report(step)
            if time.monotonic() - self._checked > arguments.check_seconds:
                self._save(step)
                self._checked = time.monotonic()
                print("held out:", self._check.run(self._model), flush=True)
        self._save(step)
        print("held out, final:", self._check.run(self._model), flush=True)

    def _make_model(self) -> Model:
        arguments = self._arguments
        if arguments.init is not None:
            checkpoint = torch.load(arguments.init)
            model = Model(ModelSpec(**checkpoint["spec"]))
            model.load_state_dict(checkpoint["model"])
            return model
        sizes = (arguments.width, arguments.layers, arguments.feed_forward)
        heads = (arguments.heads, arguments.kv_heads)
        return Model(ModelSpec(len(self._tokenizer.tokens), *sizes, *heads))

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _progress(self) -> float:
        done = self._elapsed() / (self._arguments.minutes * 60)
        first, last = self._arguments.from_progress, self._arguments.to_progress
        return float(first + (last - first) * done)

    def _step(self, step: int) -> None:
        progress = self._progress()
        short_only = progress < _SHORT_UNTIL and self._arguments.init is None
        documents = draw_documents(self._source, self._arguments.batch_tokens, short_only)
        batch = make_batch(self._tokenizer, documents)
        is_end = batch.targets == self._tokenizer.id_of[END_OF_TURN]
        loss, _ = self._model(batch, torch.where(is_end, self._arguments.end_weight, 1.0))
        self._model.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step(_rate_share(step, progress), _momentum(step))
        self._tokens += len(batch.ids)
        last = loss.item()
        self._mean_loss = last if self._mean_loss is None else 0.95 * self._mean_loss + 0.05 * last

    def _report(self, step: int) -> None:
        seconds = self._elapsed()
        print(
            f"step {step}, {seconds / 60:.1f} min, {self._tokens / 1e6:.2f} M tokens"
            f" ({self._tokens / seconds:.0f}/s), loss {self._mean_loss:.4f}",
            flush=True,
        )

    def _save(self, step: int) -> None:
        path = self._arguments.out
        path.parent.mkdir(parents=True, exist_ok=True)
        spec = dataclasses.asdict(self._model.spec)
        content: dict[str, Any] = {"model": self._model.state_dict(), "spec": spec, "step": step}
        unfinished = path.with_suffix(".unfinished")
        torch.save(content, unfinished)
        os.replace(unfinished, path)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    defaults = ModelSpec(vocabulary=0)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=float, default=42.0, help="how long to train")
    add("--steps-max", type=int, default=10**9, help="stop after so many steps at the latest")
    add("--mix", type=int, choices=sorted(MIXES), default=1, help="mixture of tasks")
    add("--seed", type=int, default=7, help="seed of the weights and of the text")
    add("--init", type=Path, help="checkpoint to go on from; its sizes are used")
    add("--out", type=Path, default=BUILD / "checkpoint.pt", help="checkpoint to write")
    add("--from-progress", type=float, default=0.0, help="where on the rate schedule to start")
    add("--to-progress", type=float, default=1.0, help="where on the rate schedule to stop")
    add("--end-weight", type=float, default=1.0, help="weight of the token that ends an answer")
    add("--batch-tokens", type=int, default=4608, help="about how many tokens a step sees")
    add("--muon-rate", type=float, default=0.02, help="full rate of the matrices")
    add("--adam-rate", type=float, default=0.002, help="full rate of embedding and norms")
    add("--weight-decay", type=float, default=0.02, help="of the matrices")
    add("--check-seconds", type=float, default=300.0, help="time between checkpoints and checks")
    add("--threads", type=int, default=2, help="threads of PyTorch")
    add("--width", type=int, default=defaults.width, help="size of an embedding")
    add("--layers", type=int, default=defaults.layers, help="at least 2, for the head start")
    add("--feed-forward", type=int, default=defaults.feed_forward, help="hidden size")
    add("--heads", type=int, default=defaults.heads, help="query heads, at least 2")
    add("--kv-heads", type=int, default=defaults.kv_heads, help="key and value heads")
    return parser.parse_args()


def main() -> None:
    """Train one phase."""
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    Training(arguments).run()


if __name__ == "__main__":
    main()
