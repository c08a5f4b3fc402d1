"""Methods made of parts: Karatsuba in all its forms, with its functions, loops, frames and spilled limbs."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import assemble, avr, compiled, kernel
from test_kernels import numbers, seen

from sqgen import allocate, cover, emit, frame, methods, objects, replay
from sqgen.code import SPILLED, CodeError, Function, Memory, Op
from sqgen.compile import Compiled
from sqgen.cover import CoverError
from sqgen.errors import Exit, UserError
from sqgen.kernel import make
from sqgen.oracles import OracleMissing
from sqgen.plan import Difference, Part, Plan, Recombine, Slice, Step
from sqgen.prove import prove
from sqgen.public import public
from sqgen.residence import PressureError
from sqgen.spec import spec

Form = tuple[str, str, int, str]  # operation, method, bits, parameters as "name=value ..."

INLINE = "levels=1 parts=inline"
CALLED = "levels=1 parts=calls recombine=unrolled"
TWICE = "levels=2 parts=calls recombine=unrolled"
MIXED = "levels=2 parts=inline recombine=unrolled"  # the outer level calls, the inner one is in place
NESTED = "levels=2 parts=nested recombine=unrolled"  # both in place
LOOPED = "levels=1 parts=calls recombine=looped"
SHARED = "levels=1 parts=shared"  # in place, with a function on registers for the squares
SMALL = "levels=2 parts=shared recombine=looped turn=4"
METHODS = [("mul", "karatsuba"), ("sqr", "karatsuba"), ("sqr", "karatsuba-squaring"), ("sqr", "hybrid-karatsuba")]
ODD = [88, 136, 200, 248]  # bits; their halves differ

# One of each form that takes no more than a second or two to prove; the sweep has the others.
SAMPLE: list[Form] = [
    *((op, method, bits, INLINE) for op, method in METHODS for bits in (16, 24, 88)),
    *((op, method, bits, CALLED) for op, method in METHODS for bits in (16, 24, 88)),
    *((op, method, 88, MIXED) for op, method in METHODS),
    ("mul", "karatsuba", 136, CALLED),
    *(
        ("mul", "karatsuba", bits, INLINE) for bits in (96, 128, 144, 152, 192)
    ),  # the last three with limbs on the stack
    *(("mul", "karatsuba", bits, NESTED) for bits in (80, 96, 104, 112, 120, 160, 200, 256)),  # the first too small
    ("sqr", "karatsuba", 144, NESTED),
    ("mul", "karatsuba", 344, "levels=3 parts=nested recombine=unrolled"),
    ("mul", "karatsuba", 64, TWICE),
    ("mul", "karatsuba", 64, "levels=3"),
    ("mul", "karatsuba", 128, LOOPED),
    ("sqr", "karatsuba", 128, LOOPED),
    ("sqr", "karatsuba-squaring", 136, INLINE),
    ("sqr", "karatsuba-squaring", 248, INLINE),  # with spilled limbs
    ("sqr", "karatsuba-squaring", 200, TWICE),
    ("sqr", "karatsuba-squaring", 128, "levels=3"),
    ("sqr", "karatsuba-squaring", 408, CALLED),  # limbs of L + H wait in memory
    ("sqr", "karatsuba-squaring", 544, "levels=2 parts=inline recombine=unrolled"),  # more than a pointer reaches
    ("mul", "karatsuba", 392, "levels=3 parts=inline recombine=unrolled"),
    (  # limbs are left in registers by a function that gives a frame back
        "sqr",
        "karatsuba-squaring",
        592,
        "leaf=streamed-karatsuba levels=1 parts=calls recombine=unrolled",
    ),
    ("sqr", "karatsuba-squaring", 256, LOOPED),  # its loops go round twice
    ("mul", "karatsuba", 128, "levels=2 parts=calls leaf=row-loops"),  # of one block of rows each
    ("sqr", "karatsuba-squaring", 120, "levels=2 parts=calls recombine=looped turn=2"),  # one half of two has loops
    *(("sqr", "karatsuba-squaring", bits, SHARED) for bits in (32, 88, 128)),  # 88: two functions
    ("sqr", "karatsuba-squaring", 256, SMALL),
    ("sqr", "hybrid-karatsuba", 136, INLINE),
    ("sqr", "hybrid-karatsuba", 200, INLINE),
    ("sqr", "hybrid-karatsuba", 248, CALLED),
]
FORMS = {
    form
    for op, method in METHODS
    for bits, parameters in itertools.product([*ODD, 256], [INLINE, CALLED, TWICE, MIXED, NESTED, LOOPED, "levels=3"])
    if parameters != NESTED or method == "karatsuba"
    for form in [(op, method, bits, parameters)]
}
FORMS |= {("sqr", "karatsuba-squaring", bits, form) for bits in (*ODD, 256) for form in (SHARED, SMALL)}
CALLING = [form for form in SAMPLE if "calls" in form[3] and form[2] < 200]
SHARING = [form for form in SAMPLE if "shared" in form[3]]
FILES: list[Form] = [
    ("mul", "karatsuba", 88, INLINE),
    ("mul", "karatsuba", 88, CALLED),
    ("sqr", "karatsuba-squaring", 256, LOOPED),
    ("sqr", "hybrid-karatsuba", 256, ""),  # its parts stand in its midst
]


def given(parameters: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in parameters.split())


def code(form: Form) -> Compiled:
    op, method, bits, parameters = form
    return compiled(op, bits // 8, method, **given(parameters))


def fits(form: Form) -> bool:
    """Whether its limbs find registers."""
    try:
        return bool(code(form))
    except PressureError:
        return False


# ---- proved, and right in the simulator -----------------------------------------------------------------------------


@pytest.mark.many
@pytest.mark.simulator
@pytest.mark.parametrize("form", SAMPLE, ids=str)
def test_a_form_is_proved_and_the_simulator_sees_the_manifests_numbers(form: Form) -> None:
    op, method, bits, parameters = form
    made = kernel(op, bits, method, **given(parameters))
    assert made.verdict.proved
    assert emit.manifest(made)["bytes"] == len(made.compiled.image)
    assert seen(made) == numbers(made)


@pytest.mark.simulator
@pytest.mark.sweep
@pytest.mark.parametrize("form", sorted(FORMS - set(SAMPLE)), ids=str)
def test_every_form_is_proved_and_right_at_odd_sizes(form: Form) -> None:
    op, method, bits, parameters = form
    if not fits(form):
        assert "inline" in parameters or "shared" in parameters
        return
    made = kernel(op, bits, method, **given(parameters))
    assert made.verdict.proved and seen(made) == numbers(made)


# ---- calls, loops, stack --------------------------------------------------------------------------------------------


def names(made: Compiled) -> Counter[str]:
    return Counter(line.instr.insn.name for line in made.lines)


@pytest.mark.parametrize("form", CALLING + SHARING, ids=str)
def test_called_parts_are_functions_each_of_which_is_there_once(form: Form) -> None:
    made = code(form)
    calls = [line.target for line in made.lines if line.instr.insn.name == "rcall"]
    labels = [label for line in made.lines for label in line.labels]
    assert calls and set(calls) <= set(labels) and len(labels) == len(set(labels))
    assert len(set(calls)) == names(made)["ret"] - 1
    assert not made.straight


@pytest.mark.parametrize("form", SHARING, ids=str)
def test_a_function_on_registers_touches_no_memory(form: Form) -> None:
    made = code(form)
    entry, *others = made.registers.functions
    on_registers = [each for each in others if not any(op.insn == "rcall" for op in each.ops)]
    assert on_registers and any(
        op.insn == "rcall" for op in (entry if len(others) == len(on_registers) else others[0]).ops
    )
    assert not [op.insn for each in on_registers for op in each.ops if op.insn.startswith(("ld", "st", "push", "pop"))]


def test_a_function_on_registers_and_its_caller_must_agree_on_them() -> None:
    isa, made = avr(), code(("sqr", "karatsuba-squaring", 128, SHARED))
    entry, callee = made.code.functions
    prices, pairs = frame.prices(isa, "call"), isa.pairs()
    chosen = allocate.places(allocate.allocate(callee, prices, pairs))
    assert len(chosen) == 8 + 16
    caller = allocate.allocate(entry, prices, pairs, chosen=chosen)
    replay.verify(entry, caller)
    (first,) = [index for index, op in enumerate(caller.ops) if op.insn == "rcall"][:1]
    registers = caller.ops[first].args
    turned = replace(caller.ops[first], args=(registers[0], registers[2], registers[1], *registers[3:]))
    with pytest.raises(CodeError, match="does not follow"):
        replay.verify(entry, with_op(caller, first, turned))
    same = dict.fromkeys(chosen, "r20")
    with pytest.raises(CodeError, match="no register is free where r20 has to be"):
        allocate.allocate(entry, prices, pairs, chosen=same)


@pytest.mark.parametrize(
    "form", [form for form in SAMPLE if form[3] == INLINE and form[1] != "hybrid-karatsuba"], ids=str
)
def test_parts_in_place_are_straight_code(form: Form) -> None:
    made = code(form)
    assert made.straight and names(made)["ret"] == 1 and not names(made)["rcall"]


@pytest.mark.parametrize(
    "form", [("mul", "karatsuba", 256, LOOPED), ("sqr", "karatsuba-squaring", 256, LOOPED)], ids=str
)
def test_a_looped_recombination_jumps_back_and_an_unrolled_one_does_not(form: Form) -> None:
    def jumps_back(made: Compiled) -> int:
        return sum(line.instr.insn.name == "rjmp" and line.instr.immediates["k"] < 0 for line in made.lines)

    looped, unrolled = code(form), code((*form[:3], CALLED))
    assert jumps_back(looped) and not jumps_back(unrolled)
    assert len(looped.image) < len(unrolled.image)


def depth(plan: Plan) -> int:
    """Bytes of stack that a part takes at most, its return address not among them: M, the pointers that wait, and the
    sign, which lies there only once the differences are known, below which each call leaves a return address."""
    parts = [part for part in plan.parts() if part.called]
    if not parts:
        return 0
    recombination = [step for step in plan.steps if isinstance(step, Recombine)]
    frame = 2 * recombination[0].half + bool(recombination[0].signs) if recombination else 0
    pointers = 2 * len({"r", *plan.operands})
    return frame + pointers + 2 + max(depth(part.plan) for part in parts)


def test_in_place_l_of_eight_limbs_is_a_level_and_no_other_part_is() -> None:
    for limbs in range(12, 20):
        by_strips = [part.plan for part in methods.plan("mul", limbs, "karatsuba", given(INLINE)).parts()]
        levels = [part.limbs for part in by_strips if any(part.parts())]
        assert levels == ([8] if limbs in (15, 16) else [])
        by_rows = methods.plan("mul", limbs, "karatsuba", given(INLINE.replace("inline", "rows"))).parts()
        assert not any(any(part.plan.parts()) for part in by_rows)
    made = kernel("mul", 128, "karatsuba", **given(INLINE))
    assert sum(line.instr.insn.name == "mul" for line in made.compiled.lines) == 3 * 4 * 4 + 8 * 8 + 8 * 8


@pytest.mark.parametrize("form", [form for form in CALLING if form[1] != "hybrid-karatsuba"], ids=str)
def test_the_stack_of_calls_is_counted(form: Form) -> None:
    op, method, bits, parameters = form
    made = kernel(op, bits, method, **given(parameters))
    saved = [line.instr.insn.frame for line in made.compiled.lines].index("")
    assert made.verdict.stack == saved + depth(made.compiled.plan)


def cycles(*, bits: int, most: int) -> int:
    """Body cycles of the fastest square of fewer than `most` bytes; proved."""
    made = make(spec("avr", bits, max_bytes=most - 1))
    assert made.verdict.proved and made.size < most
    return made.price.body


@pytest.mark.parametrize(("bits", "most", "times"), [(256, 1400, 1.2), (1024, 3000, 1.1)])
def test_a_small_square_is_not_much_slower_than_the_fastest_public_one(bits: int, most: int, times: float) -> None:
    """Which takes 4608 and 6934 bytes."""
    fastest = next(other for other in public(avr(), "sqr") if other.bits == bits)
    assert cycles(bits=bits, most=most) <= times * fastest.cycles


@pytest.mark.parametrize(("most", "fewer"), [(2200, 3000), (1300, 3700)])
def test_a_small_square_of_256_bits_takes_fewer_cycles_than_was_aimed_at(most: int, fewer: int) -> None:
    assert cycles(bits=256, most=most) < fewer


def test_what_a_leaf_stores_last_is_not_loaded_again() -> None:
    made = code(("sqr", "karatsuba-squaring", 256, CALLED))
    half = made.plan.limbs // 2
    (there,) = (len(op.args) for each in made.code.functions for op in each.ops if op.insn == "give")
    assert there > 2, "more than the last product"
    names = [line.instr.insn.name for line in made.lines]
    end = len(names) - names[::-1].index("pop")  # of the entry, which comes last but for its functions
    behind = names[max(index for index, name in enumerate(names[:end]) if name == "rcall") : end]
    assert behind.count("ldd_z") == 4 * half - there


@pytest.mark.parametrize("form", CALLING, ids=str)
def test_r1_is_cleared_at_the_end_only_where_it_need_be(form: Form) -> None:
    """The last time that it is cleared is of use: without that the proof refuses the kernel."""
    made = code(form)
    what = spec("avr", form[2], op=form[0])
    entry = list(itertools.takewhile(lambda line: line.instr.insn.name != "ret", made.lines))
    ends = list(itertools.accumulate(line.instr.insn.size for line in entry))
    cleared = (line.instr.insn.name == "eor" and line.instr.operands == ("r1", "r1") for line in entry)
    *_, end = itertools.compress(ends, cleared)
    assert prove(made.image, what.contract, what.core).proved
    without = made.image[: end - 2] + bytes(2) + made.image[end:]  # NOP
    assert not prove(without, what.contract, what.core).proved


# ---- the cover check ------------------------------------------------------------------------------------------------


def plan(op: str, method: str, parameters: str) -> Plan:
    return methods.plan(op, 8, method, given(parameters))


def changed(whole: Plan, kind: type[Step], at: int, *new: Step) -> Plan:
    """The plan with its `at`-th step of a kind replaced."""
    found = [index for index, step in enumerate(whole.steps) if isinstance(step, kind)][at]
    return replace(whole, steps=(*whole.steps[:found], *new, *whole.steps[found + 1 :]))


def broken() -> Iterator[tuple[str, Plan, str]]:
    """(what is wrong, the plan, what is said of it)."""
    for form in (INLINE, CALLED):
        whole = plan("mul", "karatsuba", form)
        parts = list(whole.parts())
        high = next(index for index, part in enumerate(parts) if part.left.first == 4)
        differences = [step for step in whole.steps if isinstance(step, Difference)]
        (last,) = [step for step in whole.steps if isinstance(step, Recombine)]
        column = replace(parts[high], into=replace(parts[high].into, first=7))
        yield f"{form}: a wrong column", changed(whole, Part, high, column), "does not begin at column 7"
        yield f"{form}: H left out", changed(whole, Part, high), r"r\[8..16\) holds no product"
        for at, step in enumerate(differences):
            same = replace(step, right=replace(step.right, first=0))
            yield f"{form}: a wrong difference", changed(whole, Difference, at, same), "lands in column"
            turned = replace(step, left=step.right, right=step.left)
            yield f"{form}: a difference turned", changed(whole, Difference, at, turned), "lands in column"
            yield f"{form}: no difference", changed(whole, Difference, at), "holds no difference"
        yield f"{form}: no sign", changed(whole, Recombine, 0, replace(last, signs=())), "sign that is left out"
        one = replace(last, signs=last.signs[:1])
        yield f"{form}: one sign", changed(whole, Recombine, 0, one), "sign that is left out"
        yield f"{form}: one sign twice", changed(whole, Recombine, 0, replace(last, signs=one.signs * 2)), "this sign"
        yield f"{form}: a wrong half", changed(whole, Recombine, 0, replace(last, half=3)), "holds no product"
        yield f"{form}: nothing recombined", changed(whole, Recombine, 0), "counts 0 times instead of 1"
        yield f"{form}: recombined twice", changed(whole, Recombine, 0, last, last), "counts 2 times instead of 1"
    late = plan("mul", "karatsuba", CALLED)
    middle = next(step for step in late.steps if isinstance(step, Difference))
    yield "a difference over L", replace(late, steps=(*late.steps[:-1], middle)), "but holds a product"
    lost = plan("sqr", "karatsuba-squaring", CALLED)
    part = next(part for part in lost.parts() if part.into.name == "m")
    yield "a difference below L", replace(lost, steps=(*lost.steps[:-1], part)), "holds no difference"
    hybrid = plan("sqr", "hybrid-karatsuba", CALLED)
    yield "no rectangle", changed(hybrid, Part, 0), "loaded before it was stored"
    (rectangle,) = hybrid.parts()
    other = replace(rectangle, right=Slice("a", 0, 4), into=Slice("r", 0, 8))
    yield "another rectangle", changed(hybrid, Part, 0, other), "counts 3 times|loaded before|stored over"


@pytest.mark.parametrize(("wrong", "says"), [pytest.param(*rest, id=name) for name, *rest in broken()])
def test_a_broken_plan_with_parts_is_refused(wrong: Plan, says: str) -> None:
    with pytest.raises(CoverError, match=says):
        cover.check(wrong)


# ---- spilled limbs --------------------------------------------------------------------------------------------------


def spilling() -> tuple[Function, Function]:
    """A function that has more limbs than registers, before and after allocation."""
    isa, made = avr(), code(("sqr", "karatsuba-squaring", 320, INLINE))
    (before,) = made.code.functions
    return before, allocate.allocate(before, frame.prices(isa, "call"), isa.pairs())


def reloads(function: Function) -> list[int]:
    return [index for index, op in enumerate(function.ops) if op.insn == "load" and _in_frame(op)]


def _in_frame(op: Op) -> bool:
    return isinstance(op.args[1], Memory) and op.args[1].base == SPILLED


def with_op(function: Function, at: int, *new: Op) -> Function:
    return replace(function, ops=(*function.ops[:at], *new, *function.ops[at + 1 :]))


def test_limbs_without_a_register_wait_in_the_frame_and_come_back() -> None:
    before, after = spilling()
    stores = [op for op in after.ops if op.insn == "store" and _in_frame(op)]
    assert stores and reloads(after)
    replay.verify(before, after)


def test_a_wrong_reload_is_found() -> None:
    before, after = spilling()
    places = [op.args[1] for op in after.ops if op.insn == "store" and _in_frame(op)]
    for at in reloads(after):
        register, place = after.ops[at].args
        other = next(each for each in places if each != place)
        for wrong in ((replace(after.ops[at], args=(register, other)),), ()):
            with pytest.raises(CodeError, match=r"does not follow|lost"):
                replay.verify(before, with_op(after, at, *wrong))


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ["avr-gcc", "LLVM"])
@pytest.mark.parametrize("form", FILES, ids=str)
def test_the_emitted_file_assembles_and_links_to_the_proved_bytes(tmp_path: Path, form: Form, assembler: str) -> None:
    op, method, bits, parameters = form
    made = kernel(op, bits, method, **given(parameters))
    (tmp_path / "kernel.S").write_text(emit.assembly(made))
    target = assemble(tmp_path / "kernel.S", tmp_path / "kernel.o", assembler)
    read = objects.read(target, avr(), made.spec.symbol)  # its own branches resolved
    assert (read.entry, read.image[: len(read.body)]) == (0, made.compiled.image)
    linked = objects.read(link(target), avr(), made.spec.symbol)
    assert linked.image[linked.entry : linked.entry + made.size] == made.compiled.image


def link(target: Path, *others: Path) -> Path:
    if shutil.which("avr-ld") is None:
        raise OracleMissing("avr-ld not found; install the Debian package binutils-avr")
    linked = target.with_suffix(".elf")
    subprocess.run(["avr-ld", "-m", "avr51", "-e", "0", "-o", linked, target, *others], check=True)
    return linked


CALLS = """
.section .text
.global f
.type f, @function
f:
    rcall own
    {foreign}
    ret
.size f, .-f
own:
    ret
"""


def test_calls_of_its_own_are_resolved_and_foreign_ones_are_refused(tmp_path: Path) -> None:
    def read(foreign: str) -> objects.CodeBytes:
        (tmp_path / "calls.S").write_text(CALLS.format(foreign=foreign))
        return objects.read(assemble(tmp_path / "calls.S", tmp_path / "calls.o", "avr-gcc"), avr(), "f")

    assert read("nop").image.hex() == "02d0000008950895"
    for foreign in ("rcall other", "rjmp other", "call own"):
        with pytest.raises(UserError, match=r"has relocations in its code, .*link it first") as caught:
            read(foreign)
        assert caught.value.code == Exit.FILE


# ---- what does not fit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "says"),
    [
        *((("mul", "karatsuba", bits, INLINE), "limbs are live in .* choose parts=calls") for bits in (264, 512)),
        (("sqr", "hybrid-karatsuba", 640, INLINE), "limbs are live in .* choose parts=calls"),
        (("sqr", "karatsuba-squaring", 512, INLINE), "limbs are live in .* choose parts=calls"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_one_line_with_what_to_choose(form: Form, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        code(form)
    assert caught.value.code == Exit.LIMITS and "\n" not in str(caught.value)
