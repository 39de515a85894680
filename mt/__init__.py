"""Trains, runs and judges machine-translation models.

    from mt import Translator
    Translator.load("runs/demo").translate(["Hello ."])

Public names are loaded on first use, so that `import mt` loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mt.translator import Translator

__version__ = "0.1.0.dev0"
__all__ = ["Translator", "__version__"]

_HOMES = {"Translator": "mt.translator"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
