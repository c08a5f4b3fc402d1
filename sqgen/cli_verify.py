"""`sqgen verify`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Check an object file and its manifest again, by the second proof.")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
def verify(manifest: Path, file: Path) -> None:
    """Check an object or ELF FILE against the MANIFEST that was written with its source.

    The code is proved anew, by another proof than the one that made the manifest, and code, cycles, stack, overlap,
    registers and the digest of the proof are compared.
    """
    from . import progress, report  # noqa: PLC0415
    from .cli import _print  # noqa: PLC0415
    from .verify import verify as checked  # noqa: PLC0415

    with progress.word(f"checking '{file}'"):
        found = checked(manifest, file)
    _print(report.verified_table(found))
