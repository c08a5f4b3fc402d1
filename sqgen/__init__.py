"""sqgen: a compiler for squaring and multiplying big integers on small processors."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# In a bare checkout `isa`, `schedules` and `templates` lie beside this folder; installed, inside it.
_TOP = Path(__file__).resolve().parent.parent
if (_TOP / "isa" / "avr.toml").is_file():
    __path__.append(str(_TOP))

try:
    __version__ = version("sqgen")
except PackageNotFoundError:  # a bare checkout
    __version__ = "0"
