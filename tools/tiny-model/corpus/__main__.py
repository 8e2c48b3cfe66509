"""Print conversations of the corpus."""

import argparse
import random

from corpus import MIXES, Source, conversation, render, text_of


def main() -> None:
    """Print as many conversations as asked for, each closed by a line of equal signs."""
    parser = argparse.ArgumentParser(prog="python3 -m corpus", description=__doc__)
    parser.add_argument("seed", type=int, help="seed of the random source")
    parser.add_argument("count", type=int, help="how many conversations")
    parser.add_argument(
        "--mix",
        type=int,
        choices=sorted(MIXES),
        default=1,
        help="training phase whose mixture of tasks is used (default: %(default)s)",
    )
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="use only the number pairs that are kept out of training",
    )
    arguments = parser.parse_args()
    source = Source(random.Random(arguments.seed), MIXES[arguments.mix], arguments.held_out)
    for _ in range(arguments.count):
        print(text_of(render(*conversation(source))))
        print("=" * 40)


if __name__ == "__main__":
    main()
