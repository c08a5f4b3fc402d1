"""Where code with loops goes is what a run of it says, whether or not all of it is executed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from conftest import Line, contract, core, instrs

from sqgen import choosing, interpret
from sqgen.encode import assemble
from sqgen.interpret import Endless, Machine
from sqgen.route import route
from sqgen.spec import Spec, spec

LOOPED = {"leaf": "row-loops", "parts": "calls", "recombine": "looped", "levels": "2"}
REQUESTS = [
    *(spec(isa, 256, op=op, method="row-loops") for isa in ("avr", "arm") for op in ("sqr", "mul")),
    *(spec("avr", bits, op=op, method="column-loops") for bits in (16, 136) for op in ("sqr", "mul")),
    spec("avr", 512, op="mul", method="karatsuba", parameters=LOOPED),
    spec("avr", 256, op="mul"),
    spec("arm", 256, op="mul", core="cortex-m0"),
    spec("msp430", 128, method="rows"),
]


def name(request: Spec) -> str:
    return f"{request.contract.isa.name}-{request.contract.op}-{request.contract.limbs}-{request.method}"


@pytest.mark.parametrize("request_", REQUESTS, ids=name)
def test_the_route_is_the_path_of_a_run(request_: Spec) -> None:
    what = request_.contract
    image = choosing.choose(request_).image
    _, path = interpret.trace(image, what, request_.core, (3,) * (len(what.buffers) - 1))
    found = route(image, what, request_.core)
    assert found is None or tuple(found) == path
    assert found is not None or what.isa.abi.link or request_.core.devices


def looped(lines: Sequence[Line]) -> list[int] | None:
    """The route of AVR code, and that it is the path of a run where it is known."""
    image, what = assemble(instrs([*lines, ("ret",)])), contract("sqr", 2)
    found = route(image, what, core())
    _, path = interpret.trace(image, what, core(), (0,))
    assert found is None or tuple(found) == path
    return found


def test_what_no_branch_hangs_on_is_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    executed = []
    step = Machine.step

    def noting(self: Machine, image: bytes, at: int) -> int | None:
        executed.append(at)
        return step(self, image, at)

    turn: list[Line] = [("mul", "r20", "r20"), ("add", "r22", "r0"), ("dec", "r18"), ("brne", -8)]
    monkeypatch.setattr(Machine, "step", noting)
    image = assemble(instrs([("ldi", "r18", 3), *turn, ("ret",)]))
    assert route(image, contract("sqr", 2), core()) == [0, *[2, 4, 6, 8] * 3, 10]
    assert executed == [0, *[6, 8] * 3, 10]


def test_a_counter_that_comes_from_another_register_is_followed() -> None:
    turn: list[Line] = [("add", "r20", "r21"), ("cp", "r20", "r22"), ("brcs", -6)]
    start: list[Line] = [("ldi", "r20", 0), ("ldi", "r21", 3), ("ldi", "r22", 20)]
    assert len(looped([*start, *turn]) or ()) == len(start) + 3 * 7 + 1


def test_a_counter_that_was_in_memory_is_not_followed() -> None:
    start: list[Line] = [("movw", "r30", "r24"), ("ldi", "r18", 3), ("st_zp", "r18"), ("ld_mz", "r19")]
    assert looped([*start, ("dec", "r19"), ("brne", -4)]) is None
    saved: list[Line] = [("ldi", "r18", 3), ("push", "r18"), ("pop", "r19"), ("dec", "r19"), ("brne", -4)]
    assert looped(saved) is None


def test_a_pointer_that_is_compared_is_moved() -> None:
    start: list[Line] = [("movw", "r30", "r24"), ("movw", "r18", "r24"), ("subi", "r18", 253), ("sbci", "r19", 255)]
    turn: list[Line] = [("st_zp", "r20"), ("cp", "r30", "r18"), ("cpc", "r31", "r19"), ("brne", -8)]
    found = looped([*start, *turn])
    assert found is not None and len(found) == len(start) + 3 * 4 + 1


def test_code_without_end_is_found_out() -> None:
    image = assemble(instrs([("rjmp", -2)]))
    with pytest.raises(Endless):
        route(image, contract("sqr", 2), core())
