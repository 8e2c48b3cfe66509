"""Where things are: this folder, and the folder for everything that is built."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("TINY_MODEL_BUILD", HERE.parents[1] / "build" / "tiny-model"))
