"""Everything that can go wrong for a user: one exception, one table of exit codes.

A `UserError` is printed as one line on stderr and ends the program with its code.  Any other exception that
reaches the command line is a bug.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the command line.  README.md prints this table; a test keeps the two the same."""

    OK = 0
    USAGE = 2
    LIMITS = 3
    UNPROVED = 4
    FILE = 5
    TOOL = 6
    DISAGREES = 7
    STOPPED = 130


EXIT_MEANING = {
    Exit.OK: "done; for `prove`, `verify` and `check`: it holds",
    Exit.USAGE: "the request makes no sense: bad size, unknown ISA, core, method, parameter or option",
    Exit.LIMITS: "no known kernel meets the limits, or the core cannot run one",
    Exit.UNPROVED: "the code is wrong, or could not be proved; nothing was written",
    Exit.FILE: "a file or folder cannot be read, understood or written",
    Exit.TOOL: "an outside program that this command needs is not installed",
    Exit.DISAGREES: "the outside simulator, or the code, disagrees with the manifest or with the arithmetic",
    Exit.STOPPED: "stopped by Ctrl-C",
}


class UserError(Exception):
    """One line that says what is wrong and what to do, with the exit code it ends in."""

    def __init__(self, message: str, code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.code = code
