"""sqgen: a compiler for squaring and multiplying big integers on small processors."""

from .places import CHECKOUT, folder

if CHECKOUT:  # `sqgen.isa`, `sqgen.schedules` and `sqgen.templates` lie beside this folder
    __path__.append(str(folder("isa").parent))

__version__ = "0.1.0"
