"""`mt`, but that the largest batches are tried on CPUs as well; to be run by ranks."""

from __future__ import annotations

from mt.cli import app
from mt.train import trial

if __name__ == "__main__":
    trial.TRIED_ON.add("cpu")
    app.main()
