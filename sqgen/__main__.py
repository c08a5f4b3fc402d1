"""Where the program begins: Ctrl-C while it is being loaded ends it as at any other time."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    try:
        from .cli import main as command_line  # noqa: PLC0415  (the import is what may be stopped)

        command_line(arguments)
    except KeyboardInterrupt:
        import sys  # noqa: PLC0415

        from .errors import Exit  # noqa: PLC0415

        if sys.stderr is not None:
            sys.stderr.write("\nError: stopped\n")
        sys.exit(Exit.STOPPED)
    finally:
        gc.freeze()  # all goes with the process; Python would look through it for cycles first


if __name__ == "__main__":
    main()
