"""The program that anneals orders of runs prices them as the compiler makes them, and finds the same from one seed."""

from __future__ import annotations

import subprocess

import order_runs
import pytest

from sqgen import answers, methods
from sqgen.search import Job

NEAR = 3  # cycles: the compiler follows more ways to place limbs, and looks at blocks one by one
SIZES = [("sweeps", 5), ("sweeps", 13), ("sweeps", 16), ("sweeps", 19)]
STREAMED = [("streamed-karatsuba", n) for n in (20, 23, 28, 33)]


def test_a_program_prices_orders_as_the_compiler_does_and_makes_them_better() -> None:
    pytest.importorskip("ziglang", reason="pip install sqgen[assembler]")
    program = order_runs.compiled()
    for method, limbs in SIZES + STREAMED:
        job = Job("avr", "sqr", limbs, method)
        before = job.before()
        assert before
        plan = job.plan(answers.given(before))
        text = "\n".join(map(order_runs.line, order_runs.squares(plan)))
        command = [str(program), "1", "0", "1", "1", "0"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        same = order_runs.parameters(done.stdout.splitlines())
        assert abs(int(done.stderr) - job.estimate(same)) <= NEAR
    job = Job("avr", "sqr", 8, "sweeps")
    start = job.plan(job.way.fitted(8, methods.defaults("sweeps", 8)))
    found = [order_runs.anneal(program, start, seed, order_runs.Options(3000)) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert all(job.estimate(each) < job.estimate(dict(start.parameters)) for each in found)
    for text in ("", "4", "4 1 8 1 2 0 1"):
        refused = subprocess.run(
            [str(program), "1", "1", "1", "1", "0"], input=text, capture_output=True, text=True, check=False
        )
        assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1
