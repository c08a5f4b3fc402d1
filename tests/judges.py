"""All that judge a kernel, at once."""

from __future__ import annotations

from sqgen import check
from sqgen.forward_proof import prove_forward
from sqgen.interpret import broken_promise
from sqgen.kernel import Kernel


def all_agree(made: Kernel) -> None:
    """The second proof finds the path and the stack of the first one, runs keep the promises, and the simulator counts
    what the kernel says."""
    code = made.compiled.image, made.spec.contract, made.spec.core
    again = prove_forward(*code)
    assert again.proved and again.paths == (made.verdict.path,) and again.stack == made.verdict.stack
    assert not broken_promise(*code, runs=40)
    seen = check.run(*code, entry=0, runs=20, branches=False)
    assert (seen.body, seen.call, seen.stack) == (made.price.body, made.price.call, made.verdict.stack)
