"""Products that called functions form on the way: found where they are, and no help to a wrong kernel."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from conftest import core
from handwritten import Foreign, link

from sqgen import products, runs

INNER = """
mul16:                      ; Z[0..3] = X[0..1] * Y[0..1]; r2 is zero
    ld   r18, X+
    ld   r19, X
    sbiw r26, 1
    ldd  r20, Y+0
    ldd  r21, Y+1
    mul  r18, r20
    movw r22, r0
    mul  r19, r21
    movw r24, r0
    mul  r18, r21
    add  r23, r0
    adc  r24, r1
    adc  r25, r2            ; low, high
    mul  r19, r20
    add  r23, r0
    adc  r24, r1
    adc  r25, r2            ; high, low
    std  Z+0, r22
    std  Z+1, r23
    std  Z+2, r24
    std  Z+3, r25
    ret
"""
ONTO_THE_STACK = """
    push r2
    push r2
    push r2
    push r2
    in   r30, 0x3d
    in   r31, 0x3e
    adiw r30, 1
    rcall mul16
    pop  r22
    pop  r23
    pop  r24
    pop  r25
    movw r30, r16
"""
ACCUMULATE = "".join(
    f"    ldd r18, Z+{2 + at}\n    {'adc' if at else 'add'} r18, {addend}\n    std Z+{2 + at}, r18\n"
    for at, addend in enumerate(("r22", "r23", "r24", "r25", "r2", "r2"))
)
OUTER = f"""
; void mul32(uint8_t *r, const uint8_t *a, const uint8_t *b)
.global mul32
mul32:
    push r2
    push r16
    push r17
    push r28
    push r29
    clr  r2
    movw r16, r24
    movw r30, r24
    movw r26, r22
    movw r28, r20
    rcall mul16             ; low, low
    adiw r26, 2
    adiw r28, 2
    adiw r30, 4
    rcall mul16             ; high, high
    sbiw r28, 2
{ONTO_THE_STACK}{ACCUMULATE}
    sbiw r26, 2
    adiw r28, 2
{ONTO_THE_STACK}{ACCUMULATE}
    clr  r1
    pop  r29
    pop  r28
    pop  r17
    pop  r16
    pop  r2
    ret
"""


@dataclass(frozen=True)
class Broken:
    """What stands in the place of what, once, and whether a run shows it."""

    old: str
    new: str
    shows: bool = True


BROKEN = {
    "the function forms another product": Broken("mul  r18, r21", "mul  r18, r20"),
    "the function loses a carry": Broken("    adc  r25, r2            ; low, high\n", ""),
    "the function reads a limb that is not its own": Broken("ldd  r21, Y+1", "ldd  r21, Y+2", shows=False),
    "the function changes a register that its caller needs": Broken(
        "ld   r18, X+", "ld   r18, X+\n    mov r17, r18", False
    ),
    "the function destroys the zero that it needs the next time": Broken("std  Z+3, r25", "std  Z+3, r25\n    inc r2"),
    "the function is given a product for an operand": Broken("    adiw r26, 2\n", "    movw r26, r30\n"),
    "the function leaves a limb of the product away": Broken("    std  Z+2, r24\n", ""),
    "the function returns the product and changes it": Broken("std  Z+3, r25", "std  Z+3, r25\n    std  Z+1, r22"),
    "the caller gives it other operands": Broken("    sbiw r28, 2\n", ""),
    "a product is written over another": Broken("adiw r30, 4", "adiw r30, 2"),
    "a product lies below the stack pointer": Broken("adiw r30, 1", "sbiw r30, 7", shows=False),
    "the function returns to where it was not called": Broken("std  Z+3, r25", "std  Z+3, r25\n    pop r18", False),
    "a product is added in another column": Broken("ldd r18, Z+2", "ldd r18, Z+1"),
    "a product is changed after the return": Broken("pop  r24", "pop  r24\n    inc r24"),
}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What each look for a product found."""
    found: list[bool] = []
    shown = products.is_product

    def is_product(*arguments: object) -> bool:
        found.append(shown(*arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(products, "is_product", is_product)
    return found


def test_the_product_of_each_call_is_found(looks: list[bool]) -> None:
    assert link(INNER + OUTER).prove().proved
    assert looks == [True, True, True, True]


def broken(name: str) -> Foreign:
    text = INNER + OUTER
    assert BROKEN[name].old in text
    return link(text.replace(BROKEN[name].old, BROKEN[name].new, 1))


@pytest.mark.parametrize("name", BROKEN)
def test_no_product_on_the_way_lets_a_wrong_kernel_pass(name: str) -> None:
    assert not broken(name).prove().proved


@pytest.mark.parametrize("name", [name for name, each in BROKEN.items() if each.shows])
def test_what_is_refused_is_wrong(name: str) -> None:
    kernel = broken(name)
    assert runs.counterexample(kernel.image, kernel.contract, core(), kernel.entry) is not None


@pytest.mark.parametrize("name", ["the function forms another product", "the function loses a carry"])
def test_a_function_that_forms_no_product_is_not_taken_for_one(name: str, looks: list[bool]) -> None:
    assert not broken(name).prove().proved
    assert looks and not any(looks)
