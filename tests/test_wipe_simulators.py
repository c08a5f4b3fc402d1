"""What `-p wipe=1` leaves, seen by those who know nothing of the table: simavr, Unicorn, mspdebug.

Two runs on different operands end with the same registers, all flags and stack, where the table knows no value of some
flags; without it they do not.
"""

from __future__ import annotations

from typing import Any

import pytest
from leavings import made

from sqgen.interpret import operands
from sqgen.kernel import Kernel
from sqgen.oracles import mspdebug, mspdebug_judge, simavr, unicorn_arm, unicorn_judge

STACK = 600  # bytes looked at below the caller's
PLACES = {"r": 0x200, "a": 0x400, "b": 0x500}
REQUESTS: dict[str, list[tuple[str, int, str, str, dict[str, str]]]] = {
    "avr": [
        ("sqr", 64, "auto", "atmega128", {}),
        ("mul", 64, "karatsuba", "atmega2560", {"parts": "calls"}),
        ("sqr", 512, "auto", "atmega128", {}),
        ("mul", 64, "karatsuba", "atmega128", {"signs": "branched"}),
        ("mul", 48, "product-scanning", "atmega328p", {}),
    ],
    "arm": [
        ("sqr", 256, "auto", "cortex-m4", {"fpu": "1"}),
        ("sqr", 256, "auto", "cortex-m3", {}),
        ("sqr", 256, "auto", "cortex-m0", {}),
        ("mul", 128, "product-scanning", "cortex-m3", {}),
        ("mul", 256, "row-loops", "cortex-m4", {}),
    ],
    "msp430": [
        ("sqr", 128, "product-scanning", "msp430", {"guard": "column"}),
        ("sqr", 128, "product-scanning", "msp430", {"interrupts": "caller"}),
        ("mul", 256, "auto", "msp430", {}),
    ],
}
EACH = [(name, request) for name, requests in REQUESTS.items() for request in requests]


def in_simavr(kernel: Kernel, values: tuple[int, ...]) -> Any:
    """Registers, the status register, and the stack."""
    contract, core = kernel.spec.contract, kernel.spec.core.name
    isa, top = contract.isa, simavr.ram(core)[1]
    registers = {isa.slots[name]: 0 for name in isa.abi.zero_on_return}
    for buffer, group in zip(contract.buffers, isa.abi.arguments, strict=False):
        registers |= {isa.slots[name]: PLACES[buffer] >> 8 * part & 255 for part, name in enumerate(group)}
    memory = tuple(
        simavr.Buffer(PLACES[name], value.to_bytes(contract.limbs, "little"))
        for name, value in zip("ab", values, strict=False)
    )
    stack = top - STACK, STACK - kernel.spec.core.pc_limbs
    request = simavr.Request(registers, memory, (stack, (PLACES["r"], 2 * contract.limbs)))
    (outcome,) = simavr.call(core, kernel.compiled.image, [request], sp=top)
    assert int.from_bytes(outcome.memory[1], "little") == values[0] * values[-1]
    return outcome.registers, outcome.sreg, outcome.memory[0]


def in_unicorn(kernel: Kernel, values: tuple[int, ...]) -> Any:
    """Registers, those of the floating point unit, the status register, and the stack."""
    contract = kernel.spec.contract
    cpu = unicorn_arm.Processor(kernel.spec.core.name, kernel.compiled.image)
    places = {name: unicorn_arm.RAM + at for name, at in PLACES.items()}
    singles = unicorn_arm.SINGLES if kernel.spec.core.name.endswith(unicorn_arm.FPU) else ()
    registers = {name: unicorn_judge.JUNK + at for at, name in enumerate((*unicorn_arm.REGISTERS, *singles))}
    registers |= {"sp": unicorn_judge.STACK}
    registers |= {group[0]: at for group, at in zip(contract.isa.abi.arguments, places.values(), strict=True)}
    buffers = [
        (places[name], value.to_bytes(4 * contract.limbs, "little")) for name, value in zip("ab", values, strict=False)
    ]
    unicorn_arm.call(cpu, 0, registers, buffers)
    assert int.from_bytes(cpu.uc.mem_read(places["r"], 8 * contract.limbs), "little") == values[0] * values[-1]
    status = cpu.get("xpsr")
    stack = bytes(cpu.uc.mem_read(unicorn_judge.STACK - STACK, STACK))
    return [cpu.get(name) for name in registers], status, stack


def in_mspdebug(kernel: Kernel, values: tuple[int, ...]) -> Any:
    """Registers, the status register, and all memory but the buffers."""
    judge = mspdebug_judge._Judge(kernel.compiled.image, kernel.spec.contract, 0)
    call = judge.call((0,) * len(values))
    memory = bytearray(call.memory)
    for (at, length), number in zip(list(judge.places.values())[1:], values, strict=True):
        memory[at : at + length] = number.to_bytes(length, "little")
    (after,) = mspdebug.run(kernel.compiled.image, 0, [mspdebug.Call(call.registers, bytes(memory))])
    at, length = judge.places["r"]
    assert int.from_bytes(after.memory[at : at + length], "little") == values[0] * values[-1]
    return after.registers, after.status, after.memory[judge.stack - STACK // 2 :]


ENDS = {"avr": in_simavr, "arm": in_unicorn, "msp430": in_mspdebug}


@pytest.mark.simulator
@pytest.mark.parametrize(("name", "request_"), EACH, ids=str)
def test_runs_on_different_operands_end_alike_where_all_is_cleared_and_nowhere_else(
    name: str, request_: tuple[str, int, str, str, dict[str, str]]
) -> None:
    op, bits, method, core, parameters = request_
    for wipe in ("0", "1"):
        kernel = made(name, op, bits, method, core, **parameters, wipe=wipe)
        seen = [ENDS[name](kernel, values) for values in operands(kernel.spec.contract, 9)]
        assert any(each != seen[0] for each in seen) == (wipe == "0")
