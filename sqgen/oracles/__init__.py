"""The outside judges: simulators that this project did not write, asked whether its output is right."""


class OracleMissing(Exception):
    """A program or header of a judge is absent; the message names it and the Debian package to install."""


class OracleFailed(Exception):
    """A judge is installed but could not do what it was asked; the message is its own first complaint."""


class OracleTooSmall(OracleFailed):
    """The processor that the judge stands for has not the room for this code."""
