"""Word balance: which multiplications a kernel for a core with UMAAL has, how many, and where its loads stand."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from arm import arm, made

from sqgen import methods
from sqgen.compile import Compiled, compile_plan
from sqgen.errors import UserError

TWICE = "0.0 +0.1 +0.2 1.1 +0.3 +1.2 +1.3 2.2 +2.3 3.3"


def compiled(op: str, limbs: int, method: str, **parameters: str) -> Compiled:
    return compile_plan(methods.plan(op, limbs, method, parameters), arm())


def names(code: Compiled) -> Counter[str]:
    return Counter(line.instr.insn.name for line in code.lines)


@pytest.mark.parametrize("limbs", [2, 3, 4, 5, 6])
def test_a_square_whose_cells_are_all_added_twice_needs_n_umull_and_no_zero(limbs: int) -> None:
    """research/arm_kernels.md, M4 idea 3: exactly n UMULL and n^2 - n UMAAL."""
    cells = [(i, column - i) for column in range(2 * limbs - 1) for i in range(limbs) if i <= column - i < limbs]
    order = " ".join(f"{'' if i == j else '+'}{i}.{j}" for i, j in cells)
    found = names(compiled("sqr", limbs, "free-order", order=order))
    assert (found["umull"], found["umaal"], found["umlal"]) == (limbs, limbs * limbs - limbs, 0)
    assert not found["movs_i"] and not found["mov_i"]


@pytest.mark.parametrize("limbs", [3, 4, 8, 12])
def test_a_square_that_is_doubled_has_a_multiplication_for_each_cell_and_each_column_doubled(limbs: int) -> None:
    found = names(compiled("sqr", limbs, "product-scanning"))
    cells, doublings = limbs * (limbs + 1) // 2, 2 * limbs - 2
    assert found["umull"] + found["umaal"] + found["umlal"] == cells + doublings


@pytest.mark.parametrize("limbs", [2, 3, 8, 13])
@pytest.mark.parametrize("method", ["product-scanning", "row-blocks", "hybrid", "operand-scanning"])
def test_a_product_has_a_multiplication_for_each_cell_and_no_addition(method: str, limbs: int) -> None:
    found = names(compiled("mul", limbs, method))
    assert found["umull"] + found["umaal"] == limbs * limbs
    assert not found["adds_w"] and not found["umlal"]


@pytest.mark.parametrize("limbs", [16, 32, 48])
def test_where_blocks_are_summed_apart_carries_that_come_up_are_added_and_not_multiplied(limbs: int) -> None:
    """Each carry taken along by a UMAAL of its own brings another one: 14 multiplications for each cell of 32 limbs."""
    found = names(compiled("sqr", limbs, "lazy-doubling"))
    assert found["add_w"] > limbs
    assert found["umull"] + found["umaal"] + found["umlal"] < limbs * (limbs + 1)


def test_the_operand_is_loaded_in_one_go_where_registers_are_free_and_its_pointer_takes_the_last_limb() -> None:
    lines = compiled("sqr", 4, "free-order", order=TWICE).lines
    loads = [index for index, line in enumerate(lines) if line.instr.insn.kind == "load" and not line.instr.insn.frame]
    assert loads == list(range(loads[0], loads[0] + 4))
    assert lines[loads[-1]].instr.operands[:2] == ("r1", "r1")


def test_what_registers_do_not_hold_waits_in_the_result_before_the_stack_is_used() -> None:
    assert made("sqr", 384, "row-blocks", rows="3").verdict.stack == 4 * 8  # saved registers alone


@pytest.mark.parametrize("order", ["9.9", "0.1 0.1", "+0.0", "=0", "+=1", "0.1 +0.1", "1", "x"])
def test_an_order_with_a_word_that_is_none_or_comes_twice_is_refused(order: str) -> None:
    with pytest.raises(UserError, match=r"is no cell or doubling|comes twice"):
        methods.plan("sqr", 4, "free-order", {"order": order})


def test_what_an_order_leaves_out_comes_at_its_end() -> None:
    plan = methods.plan("sqr", 3, "free-order", {"order": "0.2 0.1"})
    assert [(cell.i, cell.j) for cell in plan.products()][:2] == [(0, 2), (0, 1)]
    assert {(cell.i, cell.j) for cell in plan.products()} == {(i, j) for j in range(3) for i in range(j + 1)}


@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_sums_of_five_rows_wait_on_the_stack_and_a_column_is_five_products_two_loads_and_a_store(op: str) -> None:
    """research/arm_kernels.md, M4 idea 11: five products for nine cycles; here without r9."""
    lines = compiled(op, 32, "row-blocks", rows="5", early="3").lines
    kinds = " ".join(line.instr.insn.kind for line in lines)
    assert len(re.findall("(?=store load load mul mul mul mul mul store)", kinds)) >= 30


@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("limbs", [6, 11, 17])
def test_what_waits_on_the_stack_is_proved_too(op: str, limbs: int) -> None:
    kernel = made(op, 32 * limbs, "row-blocks", rows="5", early="2")
    assert kernel.verdict.proved and kernel.verdict.stack > 4 * 8
    assert "r9" not in kernel.compiled.written
