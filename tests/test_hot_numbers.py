"""What a proof knows behind loops that it does at once, put into numbers, is what a run leaves there.

Loops are drawn at random, with junk in all registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from conftest import Line, avr, core, instrs
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sqgen.contract import Contract
from sqgen.encode import Instr, assemble
from sqgen.forms import Atoms
from sqgen.held import ZeroTest
from sqgen.interpret import Run, follow
from sqgen.linear import ONE, Form
from sqgen.prove import _Proof
from sqgen.runs import Runs
from sqgen.steps import Failed
from sqgen.symbolic import State

LIMBS = 12
WHAT = Contract("sqr", LIMBS, avr())
SUMS = ("r20", "r21", "r22", "r23", "r24")
READ = ("r0", "r1", "r2", "r3")
operation = st.one_of(
    st.tuples(st.sampled_from(("ld_xp", "ld_mz")), st.sampled_from(READ)),
    st.tuples(st.just("mul"), *[st.sampled_from(READ)] * 2),
    st.tuples(
        st.sampled_from(("add", "adc", "adc", "sbc", "sub")), st.sampled_from(SUMS), st.sampled_from(READ + SUMS)
    ),
    st.tuples(st.sampled_from(("mov", "eor")), st.sampled_from(SUMS), st.sampled_from(READ + SUMS)),
    st.tuples(st.just("st_yp"), st.sampled_from(SUMS)),
)
change = st.tuples(st.just("subi"), st.sampled_from(SUMS), st.integers(0, 255))
ACCUMULATED: list[Line] = [
    ("ld_xp", "r0"),
    ("ld_mz", "r1"),
    ("mul", "r0", "r1"),
    ("add", "r20", "r0"),
    ("adc", "r21", "r1"),
    ("adc", "r22", "r4"),
]
turns = st.one_of(
    st.lists(operation, min_size=1, max_size=10),
    st.lists(st.one_of(change, st.sampled_from(ACCUMULATED)), min_size=1, max_size=4),
    st.lists(st.sampled_from(ACCUMULATED), min_size=2, max_size=10),
    st.integers(1, 3).map(lambda count: [*ACCUMULATED[:3], *ACCUMULATED[3:] * count]),
)


def program(turn: Sequence[Line], count: int, zeros: Sequence[str]) -> bytes:
    """A loop of so many turns, X being at the start of a, Y at that of r, Z at the end of a."""
    lines: list[Line] = [("movw", "r26", "r22"), ("movw", "r28", "r24"), ("movw", "r30", "r22"), ("adiw", "r30", LIMBS)]
    lines += [("eor", name, name) for name in zeros]
    lines.append(("ldi", "r18", count))
    body = instrs([*turn, ("dec", "r18")])
    back = Instr(avr().insns["brne"], (-sum(instr.insn.size for instr in body) - 2,))
    return assemble([*instrs(lines), *body, back, *instrs([("ret",)])])


def known(atoms: Atoms, given: dict[int, int]) -> dict[int, int]:
    """The values of all atoms that are made from those given, which must lie in their ranges."""
    values = {ONE: 1, **given}
    for atom in range(1, len(atoms.low)):
        if atom in atoms.factors:
            if all(factor in values for factor in atoms.factors[atom]):
                values[atom] = 1
                for factor in atoms.factors[atom]:
                    values[atom] *= values[factor]
        elif atom in atoms.relation and atom not in values:
            relation = atoms.relation[atom]
            total = number(relation.form, values)
            if total is not None:
                values.update(zip(relation.digits, digits(total, relation.weights), strict=True))
        if atom in values:
            assert atoms.low[atom] <= values[atom] <= atoms.high[atom], "an atom is out of its range"
    return values


def digits(total: int, weights: Sequence[int]) -> list[int]:
    """The digits of a number, but for the highest all less than what the next one weighs."""
    found = []
    for weight, above in zip(weights, [*map(abs, weights[1:]), 0], strict=True):
        part = total % above if above else total
        total -= part
        found.append(part // weight)
    return found


def number(form: Form, values: dict[int, int]) -> int | None:
    if any(atom not in values for atom in form):
        return None
    return sum(coefficient * values[atom] for atom, coefficient in form.items())


def beginning(walk: _Proof, state: State, run: Run) -> dict[int, int]:
    """What the atoms are that there are before the first instruction."""
    given: dict[int, int] = {}
    for slot, value in enumerate(state.slots):
        if isinstance(value, dict) and len(value) == 1:
            given[next(iter(value))] = run.machine.slots[slot]
    for atom, buffer in walk.bases.items():
        given[atom] = run.machine.wide(run.machine.stack) if buffer == "stack" else run.places[buffer]
    memory = run.machine.memory[run.places["a"] :]
    return given | {atom: memory[at] for at, atom in enumerate(walk.operands["a"])}


@settings(max_examples=300)
@given(
    turns,
    st.integers(1, LIMBS),
    st.lists(st.sampled_from((*SUMS, "r4", "r4", "r4")), max_size=4),
    st.integers(0, 256**LIMBS - 1),
    st.booleans(),
)
def test_what_is_known_behind_a_loop_is_so(
    turn: list[Line], count: int, zeros: list[str], operand: int, great: bool
) -> None:
    image = program(turn, count, zeros)
    walk = _Proof(Runs(image, WHAT, core()), branches=False)
    state = walk.start()
    run = Run(WHAT, core())
    run.start((256**LIMBS - 1 if great else operand,))
    run.machine.slots = [255 if great and 2 <= slot < 22 else value for slot, value in enumerate(run.machine.slots)]
    given = beginning(walk, state, run)
    try:
        assert walk.walk(state, 0) is None
    except Failed:  # it leaves a buffer
        reject()
    assert list(follow(run.machine, image, 0)) == state.path
    values = known(walk.atoms, given)
    seen = 0
    for slot, value in enumerate(state.slots):
        forms = value.forms if isinstance(value, ZeroTest) else (value,) if isinstance(value, dict) else ()
        numbers = [number(form, values) for form in forms]
        if not numbers or None in numbers or slot in state.opaque:
            continue
        expected = int(not any(numbers)) if isinstance(value, ZeroTest) else numbers[0]
        assert run.machine.slots[slot] == expected, avr().registers[slot] if slot < 32 else slot
        seen += 1
    assert seen > 20, "most registers are known"
    for (buffer, offset), cell in state.memory.items():
        if buffer in run.places and isinstance(cell, dict) and (found := number(cell, values)) is not None:
            assert run.machine.memory[run.places[buffer] + offset] == found
