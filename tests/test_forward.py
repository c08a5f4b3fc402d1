"""The second proof accepts what is right, refuses what a run shows to be wrong, and believes what is true in a run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, cast

import pytest
from conftest import avr, compiled, contract, core
from handwritten import NAMES, Foreign, foreign
from mutants import METHODS, mutants, own, subject
from test_prove import BROKEN
from test_toy import REQUESTS, made

from sqgen import forward, forward_end, forward_proof, interpret
from sqgen.contract import Contract
from sqgen.encode import Instr, assemble, decode
from sqgen.forward import Machine
from sqgen.forward_numbers import Budget, Cut, Fork, Form, Impossible, Numbers, Value
from sqgen.forward_proof import prove_forward
from sqgen.kernel import make
from sqgen.spec import spec

SPECIAL = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)


# ---- what is right ----------------------------------------------------------------------------------------------


def is_proved(op: str, limbs: int, method: str, **parameters: str) -> None:
    made = compiled(op, limbs, method, **parameters)
    verdict = prove_forward(made.image, contract(op, limbs), core())
    assert verdict.proved, verdict.why
    assert verdict.cases == 1, "masks are factors"


@pytest.mark.many
@pytest.mark.parametrize(("op", "method"), METHODS)
@pytest.mark.parametrize("limbs", range(2, 9))
def test_kernels_of_every_method_are_proved(op: str, method: str, limbs: int) -> None:
    is_proved(op, limbs, method)


@pytest.mark.many
@pytest.mark.parametrize(("op", "method"), METHODS)
def test_kernels_of_128_bits_are_proved(op: str, method: str) -> None:
    is_proved(op, 16, method)


@pytest.mark.parametrize("parts", ["inline", "calls"])
@pytest.mark.parametrize("limbs", [4, 7])
@pytest.mark.parametrize(
    ("op", "method"),
    [("mul", "karatsuba"), ("sqr", "karatsuba"), ("sqr", "karatsuba-squaring"), ("sqr", "hybrid-karatsuba")],
)
def test_one_level_of_parts_in_place_or_called_is_proved(op: str, method: str, limbs: int, parts: str) -> None:
    is_proved(op, limbs, method, levels="1", parts=parts)


@pytest.mark.parametrize("limbs", [12, 18, 20])
def test_two_levels_in_one_piece_are_proved(limbs: int) -> None:
    """Also where the halves of halves are not of one size."""
    is_proved("mul", limbs, "karatsuba", levels="2", parts="nested")


@pytest.mark.parametrize(("op", "limbs"), [("sqr", 48), ("mul", 33)])
def test_levels_of_calls_are_proved(op: str, limbs: int) -> None:
    """Each call is walked anew."""
    is_proved(op, limbs, "karatsuba-squaring" if op == "sqr" else "karatsuba", levels="2", parts="calls")


LARGE = [("avr", "atmega128", "mul", 256), ("arm", "cortex-m0", "mul", 256), ("msp430", "msp430", "mul", 256)]


@pytest.mark.parametrize(("isa", "core", "op", "bits"), LARGE)
def test_the_fastest_kernels_of_several_levels_are_proved(isa: str, core: str, op: str, bits: int) -> None:
    kernel = make(spec(isa, bits, op=op, core=core))
    verdict = prove_forward(kernel.compiled.image, kernel.spec.contract, kernel.spec.core)
    assert (verdict.why, verdict.cases) == ("", 1)


@pytest.mark.parametrize("bits", [192, 224])
def test_two_levels_that_add_to_what_is_there_are_proved(bits: int) -> None:
    """MSP430's sum of L, H and M may be below zero, and its parts are of 4 and 3 limbs at 224 bits: what is carried out
    of the smaller one's sum counts, too.  It takes both values of both inner signs to see that nothing is lost."""
    parameters = {"levels": "2", "parts": "rows", "recombine": "unrolled"}
    kernel = make(spec("msp430", bits, op="mul", method="karatsuba", parameters=parameters))
    verdict = prove_forward(kernel.compiled.image, kernel.spec.contract, kernel.spec.core)
    assert (verdict.why, verdict.cases) == ("", 1)


def test_a_carry_that_makes_up_for_others_and_for_a_sign_of_two_differences_is_seen() -> None:
    """At 320 bits halves of 5 limbs are halved on Cortex-M0."""
    kernel = make(spec("arm", 320, op="mul", core="cortex-m0"))
    verdict = prove_forward(kernel.compiled.image, kernel.spec.contract, kernel.spec.core)
    assert (verdict.why, verdict.cases) == ("", 1)


def test_loops_over_groups_of_limbs_are_proved() -> None:
    is_proved("sqr", 16, "karatsuba-squaring", levels="1", parts="calls", recombine="looped")


@pytest.mark.parametrize("name", NAMES)
def test_kernels_that_sqgen_did_not_write_are_proved(name: str) -> None:
    kernel = foreign(name)
    verdict = prove_forward(kernel.image, kernel.contract, core(), kernel.entry)
    assert verdict.proved, verdict.why
    assert verdict.cases == 1, "masks are factors"


@pytest.mark.parametrize("request_", REQUESTS)
def test_kernels_of_an_instruction_set_without_stack_are_proved(request_: tuple[str, int, str, str]) -> None:
    kernel = made(*request_)
    assert prove_forward(kernel.compiled.image, kernel.spec.contract, kernel.spec.core).proved


# ---- what is not ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_what_the_first_proof_must_refuse_the_second_refuses_too(name: str) -> None:
    kernel = BROKEN[name].assembled()
    verdict = prove_forward(kernel.image, kernel.contract, core(), kernel.entry)
    assert not verdict.proved and verdict.why


def test_a_core_without_mul_has_no_proof() -> None:
    verdict = prove_forward(compiled("sqr", 2, "sbd").image, contract("sqr", 2), avr().core("attiny85"))
    assert not verdict.proved and "attiny85" in verdict.why


class Stranger(interpret.Machine):
    """A processor whose registers, flags and memory hold anything, and whose undefined flags do as well."""

    def __init__(self, contract: Contract, rng: random.Random) -> None:
        super().__init__(contract.isa, core(), 0x1200)
        self.rng = rng
        self.slots = [rng.getrandbits(width) for width in self.isa.widths]
        self.memory = bytearray(rng.randbytes(len(self.memory)))

    def step(self, image: bytes, at: int) -> int | None:
        following = super().step(image, at)
        for name in decode(self.isa, image, at).insn.clobbers:
            self.slots[self.isa.slots[name]] = self.rng.getrandbits(1)
        return following

    def kept(self) -> list[int]:
        names = (*self.isa.abi.callee_saved, *self.isa.wide["SP"], "I")
        return [self.slots[self.isa.slots[name]] for name in names]


def broken_promise(kernel: Foreign, runs: int) -> str:
    """The first promise that some run breaks, "" if none does."""
    rng, contract = random.Random(0), kernel.contract
    for operands in interpret.operands(contract, runs):
        machine = Stranger(contract, rng)
        places = dict(zip(contract.buffers, rng.sample(range(0x200, 0xE00, 0x100), len(contract.buffers)), strict=True))
        for registers, address in zip(contract.isa.abi.arguments, places.values(), strict=False):
            machine.set_wide(registers, address)
        for name, number in zip([*places][1:], operands, strict=True):
            machine.memory[places[name] : places[name] + contract.limbs] = number.to_bytes(contract.limbs, "little")
        machine.set_wide(contract.isa.wide["SP"], 0x1000)
        kept, memory, at = machine.kept(), bytes(machine.memory), kernel.entry
        try:
            while (following := machine.step(kernel.image, at)) is not None:
                at = following
        except Exception as error:  # the code may do anything
            return repr(error)
        result = slice(places["r"], places["r"] + 2 * contract.limbs)
        if int.from_bytes(machine.memory[result], "little") != operands[0] * operands[-1]:
            return "wrong result"
        machine.memory[result] = memory[result]
        if machine.memory[:0xF00] != memory[:0xF00] or machine.memory[0x1001:] != memory[0x1001:]:
            return "writes elsewhere"
        if machine.kept() != kept or machine.slots[machine.isa.slots["r1"]]:
            return "lost a register"
    return ""


def refuses_what_is_wrong(name: str, tried: int, runs: int) -> bool:
    """Whether every proved one of some mutants keeps its promises in all runs, most being refused."""
    every = [mutant.kernel for mutant in mutants(subject(name))]
    some = random.Random(name).sample(every, min(tried, len(every)))
    proved = [kernel for kernel in some if prove_forward(kernel.image, kernel.contract, core(), kernel.entry).proved]
    assert not any(broken_promise(kernel, runs) for kernel in proved)
    return len(proved) < 0.4 * len(some)


SIGNED = "mul/karatsuba levels=1 parts=inline/32"  # masks are products


@pytest.mark.many
@pytest.mark.parametrize(
    "name", [*own(range(3, 4)), "exchange24", "tflag24", "karatsuba32", "loop32", "pushpop24", SIGNED]
)
def test_mutants_that_a_run_shows_to_be_wrong_are_refused(name: str) -> None:
    assert refuses_what_is_wrong(name, tried=40, runs=40)


SMALL = [name for name in NAMES if name.endswith(("24", "32")) and name != "calls32"]  # no calls in the interpreter


@pytest.mark.mutate
@pytest.mark.parametrize("name", [*own(range(2, 5)), *SMALL, SIGNED])
def test_all_mutants_that_a_run_shows_to_be_wrong_are_refused(name: str) -> None:
    assert refuses_what_is_wrong(name, tried=10_000, runs=150)


# ---- what the walk believes, against a run ----------------------------------------------------------------------


class TrueNumbers(Numbers):
    """Numbers that know what they are in one run; every range, cut and name is checked as soon as it is made."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        self.real: dict[int, int] = {}

    def evaluate(self, form: Form) -> int:
        return sum(factor * prod(self.real[atom] for atom in atoms) for atoms, factor in form.items())

    def is_real(self, form: Form) -> bool:
        return all(atom in self.real for monomial in form for atom in monomial)

    def know(self, atom: int, number: int) -> None:
        low, high = self.ranges[atom]
        assert low <= number <= high, "not in its range"
        assert self.real.setdefault(atom, number) == number

    def new_cut(self, value: Value, bits: int) -> Cut:
        cut = super().new_cut(value, bits)
        if self.is_real(value.form):
            number = self.evaluate(value.form)
            self.know(cut.digit, number % (1 << bits))
            self.know(cut.rest, (number >> bits) * (1 if cut.size > 0 else -1))
            self.agrees(cut)
        return cut

    def agrees(self, cut: Cut) -> None:
        assert self.evaluate(cut.form) == self.real[cut.digit] + cut.size * self.real[cut.rest], "not what was cut"

    def factor(self, value: Value) -> int:
        atom = super().factor(value)
        if self.is_real(value.form):
            self.know(atom, self.evaluate(value.form))
        return atom

    def check(self) -> None:
        for atom, number in self.real.items():
            self.know(atom, number)
            for equal in (some.get(atom) for some in (self.names, self.known)):
                assert equal is None or self.evaluate(equal) == number
            if atom in self.cuts and self.is_real(self.cuts[atom].form):
                self.agrees(self.cuts[atom])


def truly_vanishes(numbers: TrueNumbers, form: Form, *rest: Any) -> bool:
    assumed: Mapping[int, Form] = rest[2] if len(rest) > 2 else {}
    found = VANISHES(numbers, form, *rest)
    occurs = all(numbers.evaluate(equal) == numbers.real[atom] for atom, equal in assumed.items())
    assert not found or not occurs or not numbers.evaluate(form), "not zero"
    return found


VANISHES = forward_end.vanishes


class Twin(Machine):
    """The walk beside the run of the same code on certain numbers; forks take the way of the run."""

    numbers: TrueNumbers

    def __init__(self, image: bytes, contract: Contract, rng: random.Random) -> None:
        self.rng, self.begins = rng, True
        self.real = interpret.Machine(contract.isa, core(), 1 << 16)
        super().__init__(image, contract, core(), 0, Budget())
        self.begins = False
        places = {buffer: self.numbers.real[base] for base, buffer in self.bases.items()}
        for slot, value in enumerate(self.slots):
            self.real.slots[slot] = self.numbers.evaluate(value.form)
        for (buffer, offset), value in self.memory.items():
            self.real.memory[places[buffer] + offset] = self.numbers.evaluate(value.form)

    def unknown(self, bits: int) -> Value:
        """While the state is set up any number will do; later it will be what the run has in that place."""
        value = super().unknown(bits)
        if self.begins:
            some = self.rng.choice((*SPECIAL, self.rng.getrandbits(8))) & ((1 << bits) - 1)
            address = 0x1000 * (1 + len(self.bases)) + self.rng.getrandbits(10)
            ((atom,),) = value.form
            self.numbers.know(atom, address if bits == 16 else some)
        return value

    def follow(self) -> tuple[Twin, bool]:
        """One step of both: the machine to go on with, and whether it does."""
        at = self.at
        try:
            goes_on = self.step()
        except Fork as fork:
            (bit,) = fork.args
            cases = {case.numbers.known[bit].get((), 0): case for case in self.cases(bit)}
            assert self.numbers.real[bit] in cases, "the case that occurs was left out"
            return cast(Twin, cases[self.numbers.real[bit]]).follow()
        self.real.step(self.image, at)
        for slot, value in enumerate(self.slots):
            number = self.real.slots[slot]
            for atom in itertools.chain.from_iterable(value.form):
                self.numbers.real.setdefault(atom, number)  # unknown so far
            assert slot in self.opaque or self.numbers.evaluate(value.form) == number, f"0x{at:04x}: slot {slot}"
            assert slot in self.opaque or value.low <= number <= value.high, f"0x{at:04x}: slot {slot}"
        return self, goes_on


# Masks, shifts and carries come more often than chance would bring them.
MENU = {
    "add adc sub sbc": 8,
    "lsr ror asr swap com neg inc dec bst bld": 4,
    "and or eor mov movw cp cpc andi ori subi sbci ldi": 2,
    "mul adiw sbiw push sec clc set clt": 1,
}


def some_code(rng: random.Random, length: int) -> list[Instr]:
    """Instructions that mostly work on a few registers; what is pushed is popped again."""
    few = ["r0", "r1", *rng.sample([f"r{number}" for number in range(16, 26)], rng.randrange(2, 6))]
    names, weights = zip(*((name, weight) for row, weight in MENU.items() for name in row.split()), strict=True)
    code: list[Instr] = []
    for name in rng.choices(names, weights, k=length):
        operands: list[str | int] = []
        for operand in avr().insns[name].operands:
            registers = operand.cls.registers if operand.cls else ()
            likely = [register for register in registers if register in few] if rng.random() < 0.9 else registers
            number = rng.choice((0, 1, 7, 0x0F, 0x80, 0xFF, rng.getrandbits(8)))
            operands.append(rng.choice(likely or registers) if registers else min(number, operand.high))
        if name in ("sbc", "add", "adc", "eor") and rng.random() < 0.3:
            operands[1] = operands[0]
        code.append(Instr(avr().insns[name], tuple(operands)))
        if name == "push":
            code.append(Instr(avr().insns["pop"], (rng.choice(few),)))
    return code


@pytest.fixture
def true_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "Numbers", TrueNumbers)
    monkeypatch.setattr(forward_end, "vanishes", truly_vanishes)


def follow_codes(seeds: Iterable[int]) -> None:
    """Walk and run some codes; fails where walk and run contradict each other."""
    for rng in map(random.Random, seeds):
        image = assemble(some_code(rng, 60))
        twin = Twin(image, contract("mul", 2), rng)
        while twin.at < len(image):
            twin, _ = twin.follow()
        twin.numbers.check()


@pytest.mark.usefixtures("true_numbers")
@pytest.mark.parametrize("first", range(0, 300, 20))
def test_what_the_walk_believes_of_any_code_is_true_in_a_run(first: int) -> None:
    follow_codes(range(first, first + 20))


@pytest.mark.mutate
@pytest.mark.usefixtures("true_numbers")
@pytest.mark.parametrize("first", range(1000, 10000, 100))
def test_what_the_walk_believes_of_much_code_is_true_in_a_run(first: int) -> None:
    follow_codes(range(first, first + 100))


BELIEVED = ["exchange24", "karatsuba32", "signext32", "signed32", "loop32", SIGNED]


@pytest.mark.usefixtures("true_numbers")
@pytest.mark.parametrize("name", BELIEVED)
def test_what_the_walk_believes_of_a_kernel_is_true_in_runs(name: str) -> None:
    """And what is shown of carries at its end."""
    kernel = subject(name)
    for seed in range(4):
        twin, goes_on = Twin(kernel.image, kernel.contract, random.Random(seed)), True
        while goes_on:
            twin, goes_on = twin.follow()
        twin.numbers.check()


def test_of_squares_the_low_digit_is_at_most_seven_below_the_top() -> None:
    for bits in range(4, 13):
        assert max(number * number % (1 << bits) for number in range(1 << bits)) == (1 << bits) - 7


def too_narrow(numbers: Numbers, form: Form) -> tuple[int, int]:
    low, high = INTERVAL(numbers, form)
    return low, high - 1 if len(form) > 1 else high


def off_by_one(numbers: Numbers, value: Value, bits: int) -> Cut:
    cut = NEW_CUT(numbers, value, bits)
    return cut._replace(form=numbers.combine((1, cut.form), (1, {(): 1})))


INTERVAL, NEW_CUT = Numbers.interval, Numbers.new_cut


@pytest.mark.usefixtures("true_numbers")
@pytest.mark.parametrize(("method", "faulty"), [("interval", too_narrow), ("new_cut", off_by_one)])
def test_a_walk_that_errs_contradicts_a_run(
    method: str, faulty: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Numbers, method, faulty)
    with pytest.raises((AssertionError, Impossible)):
        follow_codes(range(30))


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9, 0.99])
def test_a_budget_that_runs_out_anywhere_is_a_reason_not_an_error(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, which = compiled("sqr", 8, "karatsuba-squaring", levels="1"), core()
    budget = Budget(1 << 20)
    monkeypatch.setattr(forward_proof, "Budget", lambda: budget)
    assert prove_forward(kernel.image, contract("sqr", 8), which).proved
    budget.left = int(part * ((1 << 20) - budget.left))
    verdict = prove_forward(kernel.image, contract("sqr", 8), which)
    assert not verdict.proved and "more terms than this proof can hold" in verdict.why
