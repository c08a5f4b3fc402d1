"""The second proof accepts what is right, refuses what a run shows to be wrong, and believes what is true in a run."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from math import prod
from typing import cast

import pytest
from conftest import avr, compiled, contract, core
from handwritten import NAMES, Foreign, foreign
from mutants import METHODS, mutants, own, subject
from test_prove import BROKEN
from test_toy import REQUESTS, made

from sqgen import forward, forward_proof, interpret
from sqgen.contract import Contract
from sqgen.encode import Instr, assemble, decode
from sqgen.forward import Machine, Refused
from sqgen.forward_proof import prove_forward
from sqgen.forward_sums import ADDED, CASES, PRODUCTS, UNIT, Fork, Impossible, Limbs, Sum, Sums, Value
from sqgen.plan import Difference, Plan

WAYS = (PRODUCTS, CASES, ADDED)
SPECIAL = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)


# ---- what is right ----------------------------------------------------------------------------------------------


def signed(plan: Plan) -> bool:
    """Whether the plan, or one that it is made of, has a difference: its sign is a mask."""
    return any(isinstance(step, Difference) for step in plan.steps) or any(signed(part.plan) for part in plan.parts())


def is_proved(op: str, limbs: int, method: str, **parameters: str) -> None:
    made = compiled(op, limbs, method, **parameters)
    verdict = prove_forward(made.image, contract(op, limbs), core())
    assert verdict.proved, verdict.why
    assert verdict.cases == 1 or signed(made.plan), "only masks make cases"


@pytest.mark.parametrize(("op", "method"), METHODS)
@pytest.mark.parametrize("limbs", range(2, 9))
def test_kernels_of_every_method_are_proved(op: str, method: str, limbs: int) -> None:
    is_proved(op, limbs, method)


@pytest.mark.parametrize(("op", "method"), [pair for pair in METHODS if "karatsuba" not in pair[1]])
def test_kernels_of_128_bits_are_proved(op: str, method: str) -> None:
    """Those with masks take seconds."""
    is_proved(op, 16, method)


@pytest.mark.parametrize("parts", ["inline", "calls"])
@pytest.mark.parametrize("limbs", [4, 7])
@pytest.mark.parametrize(
    ("op", "method"),
    [("mul", "karatsuba"), ("sqr", "karatsuba"), ("sqr", "karatsuba-squaring"), ("sqr", "hybrid-karatsuba")],
)
def test_one_level_of_parts_in_place_or_called_is_proved(op: str, method: str, limbs: int, parts: str) -> None:
    is_proved(op, limbs, method, levels="1", parts=parts)


def test_two_levels_in_one_piece_are_proved_with_a_case_for_each_sign_of_the_outer_one() -> None:
    """The masks of the inner one are products; as cases they would be 8 times as many for each of three products."""
    made = compiled("mul", 12, "karatsuba", levels="2", parts="nested")
    verdict = prove_forward(made.image, contract("mul", 12), core())
    assert verdict.proved and verdict.cases == 4


def test_a_level_of_signed_differences_is_one_case() -> None:
    made = compiled("mul", 8, "karatsuba", levels="1", parts="inline")
    verdict = prove_forward(made.image, contract("mul", 8), core())
    assert verdict.proved and verdict.cases == 1


def test_loops_over_groups_of_limbs_are_proved() -> None:
    is_proved("sqr", 16, "karatsuba-squaring", levels="1", parts="calls", recombine="looped")


@pytest.mark.parametrize("name", NAMES)
def test_kernels_that_sqgen_did_not_write_are_proved(name: str) -> None:
    kernel = foreign(name)
    verdict = prove_forward(kernel.image, kernel.contract, core(), kernel.entry)
    assert verdict.proved, verdict.why
    assert verdict.cases == 1 or name.startswith(("karatsuba", "sign", "streamed")), "only masks make cases"


@pytest.mark.parametrize("request_", REQUESTS)
def test_kernels_of_an_instruction_set_without_stack_are_proved(request_: tuple[str, int, str, str]) -> None:
    kernel = made(*request_)
    assert prove_forward(kernel.compiled.image, kernel.spec.contract, kernel.spec.core).proved


def test_carries_wait_in_a_register_that_holds_anything_at_first() -> None:
    """CLR is not needed where only the bits that were shifted in are shifted out."""
    (cleared,) = [mutant for mutant in mutants(foreign("exchange24")) if mutant.how == "dropped" and mutant.at == 5]
    assert cleared.old[0].text() == "clr r21"
    assert not broken_promise(cleared.kernel, runs=50)
    assert prove_forward(cleared.kernel.image, cleared.kernel.contract, core()).proved


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


class TrueLimbs(Limbs):
    """Limbs that know what they are in one run; every range and form is checked as soon as it is made."""

    def __init__(self, sums: Sums, address_bits: int, *, masks: str) -> None:
        super().__init__(sums, address_bits, masks=masks)
        self.numbers: dict[int, Fraction] = {}

    def evaluate(self, form: Sum) -> Fraction:
        products = (factor * prod(self.numbers[limb] for limb in limbs) for limbs, factor in form.items())
        return Fraction(sum(products))

    def know(self, limb: int, number: Fraction) -> None:
        low, high = self.ranges[limb]
        assert number.denominator == 1 and low <= number <= high, "not in its range"
        assert limb not in self.forms or self.evaluate(self.forms[limb]) == number, "not what its form says"
        assert self.numbers.setdefault(limb, number) == number

    def limb(self, low: int, high: int, form: Sum | None = None) -> int:
        limb = super().limb(low, high, form)
        if form is not None and all(atom in self.numbers for monomial in form for atom in monomial):
            self.know(limb, self.evaluate(form))
        return limb

    def take_apart(self, limb: int, bits: int) -> None:
        super().take_apart(limb, bits)
        if limb in self.apart:
            ((digit,), _), ((rest,), size) = self.apart[limb].items()
            number = self.numbers[limb] % (1 << bits)
            parts = {digit: number, rest: (self.numbers[limb] - number) / size}
            for part in sorted(parts):  # the atom first
                self.know(part, parts[part])

    def factor(self, value: Value) -> int:
        atom = super().factor(value)
        self.know(atom, self.evaluate(value.parts))
        return atom

    def vanishes(self, parts: Sum) -> bool:
        found = super().vanishes(parts)
        assert not found or not self.evaluate(parts), "not zero"
        return found

    def check(self) -> None:
        for limb, number in self.numbers.items():
            self.know(limb, number)
            equals = (self.apart, self.pivots, self.defined, self.unmultiplied)
            for equal in (known.get(limb) for known in equals):
                assert equal is None or self.evaluate(equal) == number


class Twin(Machine):
    """The walk beside the run of the same code on certain numbers; forks take the way of the run."""

    limbs: TrueLimbs

    def __init__(self, image: bytes, contract: Contract, rng: random.Random, masks: str = PRODUCTS) -> None:
        self.rng, self.begins = rng, True
        self.real = interpret.Machine(contract.isa, core(), 1 << 16)
        super().__init__(image, contract, core(), 0, Sums(), masks=masks)
        self.begins = False
        places = {buffer: int(self.limbs.numbers[base]) for base, buffer in self.limbs.bases.items()}
        for slot, value in enumerate(self.slots):
            self.real.slots[slot] = int(self.limbs.evaluate(value.parts))
        for (buffer, offset), value in self.memory.items():
            self.real.memory[places[buffer] + offset] = int(self.limbs.evaluate(value.parts))

    def unknown(self, bits: int) -> Value:
        """While the state is set up any number will do; later it will be what the run has in that place."""
        value = super().unknown(bits)
        if self.begins:
            some = self.rng.choice((*SPECIAL, self.rng.getrandbits(8))) & ((1 << bits) - 1)
            address = 0x1000 * (1 + len(self.limbs.bases)) + self.rng.getrandbits(10)
            ((limb,),) = value.parts
            self.limbs.know(limb, Fraction(address if bits == 16 else some))
        return value

    def follow(self) -> tuple[Twin, bool]:
        """One step of both: the machine to go on with, and whether it does."""
        at = self.at
        try:
            goes_on = self.step()
        except Fork as fork:
            (bit,) = fork.args
            cases = {case.limbs.apart[bit].get((), 0): case for case in self.cases(bit)}
            assert self.limbs.numbers[bit] in cases, "the case that occurs was left out"
            return cast(Twin, cases[self.limbs.numbers[bit]]).follow()
        self.real.step(self.image, at)
        for slot, value in enumerate(self.slots):
            number = self.real.slots[slot]
            for limb in itertools.chain.from_iterable(value.parts):
                self.limbs.numbers.setdefault(limb, Fraction(number))  # unknown so far
            assert slot in self.opaque or self.limbs.evaluate(value.parts) == number, f"0x{at:04x}: slot {slot}"
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
def true_limbs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "Limbs", TrueLimbs)


def follow_codes(seeds: Iterable[int], masks: str = PRODUCTS) -> None:
    """Walk and run some codes; fails where walk and run contradict each other."""
    for rng in map(random.Random, seeds):
        image = assemble(some_code(rng, 60))
        twin = Twin(image, contract("mul", 2), rng, masks)
        while twin.at < len(image):
            twin, _ = twin.follow()
        twin.limbs.check()


@pytest.mark.usefixtures("true_limbs")
@pytest.mark.parametrize("masks", WAYS)
@pytest.mark.parametrize("first", range(0, 100, 20))
def test_what_the_walk_believes_of_any_code_is_true_in_a_run(first: int, masks: str) -> None:
    follow_codes(range(first, first + 20), masks)


@pytest.mark.mutate
@pytest.mark.usefixtures("true_limbs")
@pytest.mark.parametrize("masks", WAYS)
@pytest.mark.parametrize("first", range(1000, 4000, 100))
def test_what_the_walk_believes_of_much_code_is_true_in_a_run(first: int, masks: str) -> None:
    follow_codes(range(first, first + 100), masks)


BELIEVED = ["exchange24", "karatsuba32", "signext32", "signed32", "loop32", SIGNED]
SHOWN_BY_CASES = "signed32"


@pytest.mark.usefixtures("true_limbs")
@pytest.mark.parametrize("masks", WAYS)
@pytest.mark.parametrize("name", BELIEVED)
def test_what_the_walk_believes_of_a_kernel_is_true_in_runs(name: str, masks: str) -> None:
    kernel = subject(name)
    for seed in range(4):
        twin, goes_on = Twin(kernel.image, kernel.contract, random.Random(seed), masks), True
        with pytest.raises(Refused) if (name, masks) == (SHOWN_BY_CASES, PRODUCTS) else contextlib.nullcontext():
            while goes_on:
                twin, goes_on = twin.follow()
        twin.limbs.check()


def test_of_squares_the_low_digit_is_at_most_seven_below_the_top() -> None:
    for bits in range(4, 13):
        assert max(number * number % (1 << bits) for number in range(1 << bits)) == (1 << bits) - 7


def too_narrow(limbs: Limbs, form: Sum) -> tuple[Fraction | int, Fraction | int]:
    low, high = INTERVAL(limbs, form)
    return low, high - 1 if len(form) > 1 else high


def too_much(limbs: Limbs, equation: Sum) -> None:
    LEARN(limbs, limbs.sums.combine((1, equation), (1, UNIT)))


INTERVAL, LEARN = Limbs.interval, Limbs.learn


@pytest.mark.usefixtures("true_limbs")
@pytest.mark.parametrize(("method", "faulty"), [("interval", too_narrow), ("learn", too_much)])
def test_a_walk_that_errs_contradicts_a_run(
    method: str, faulty: Callable[[Limbs, Sum], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limbs, method, faulty)
    with pytest.raises((AssertionError, Impossible)):
        follow_codes(range(30))


@pytest.mark.parametrize("terms", [1000, 20000])
def test_a_budget_that_runs_out_anywhere_is_a_reason_not_an_error(terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is the second try, with masks, that has nothing left to begin with."""
    monkeypatch.setattr(forward_proof, "Sums", lambda: Sums(terms))
    which = core()
    kernel = compiled("sqr", 8, "sbd")
    verdict = prove_forward(kernel.image, contract("sqr", 8), which)
    assert not verdict.proved and "more terms than this proof can hold" in verdict.why
