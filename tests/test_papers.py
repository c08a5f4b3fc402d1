"""The methods are those of the papers: their visits, their doubling, their counts of instructions, their cycles.

Counts are of the body, the program without saves and return, as the papers print them; cycles are simavr's.
"""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import compiled, kernel

from sqgen import check
from sqgen.plan import Double, Product


def counts(op: str, bits: int, method: str, **parameters: str) -> tuple[int, int, int]:
    """Loads, stores and multiplications."""
    (function,) = compiled(op, bits // 8, method, **parameters).registers.functions
    kinds = Counter(operation.insn[:2] for operation in function.ops)
    return kinds["ld"], kinds["st"], kinds["mu"]


def body(op: str, bits: int, method: str, **parameters: str) -> int:
    """Cycles of the body in the outside simulator, which has found the values right."""
    made = kernel(op, bits, method, **parameters)
    return check.run(made.compiled.image, made.spec.contract, made.spec.core, runs=20).body


# ---- sbd in memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 9, 16, 20, 24])
def test_sbd_in_memory_sums_all_cells_off_the_diagonal_before_it_doubles_any(n: int) -> None:
    """[SBD13, section 3]: product scanning, then doubling by blocks, then the middle line of the triangle."""
    steps = compiled("sqr", n, "sbd", sums="memory").plan.steps
    first = next(index for index, step in enumerate(steps) if isinstance(step, Double))
    before = [step for step in steps[:first] if isinstance(step, Product)]
    after = [step for step in steps[first:] if isinstance(step, Product)]
    assert len(before) == n * (n - 1) // 2 and all(cell.i < cell.j for cell in before)
    assert [cell.column for cell in before] == sorted(cell.column for cell in before)
    assert after == [Product(i, i) for i in range(n)]


@pytest.mark.parametrize("bits", [128, 160])
def test_sbd_in_memory_takes_the_loads_and_stores_of_the_paper(bits: int) -> None:
    """[SBD13, Table 1] has 3n loads, 4n stores, n^2/2 multiplications (its text: (n^2 + n)/2).

    Columns 0 and 2n-1 have no sum off the diagonal, so that 2n-2 sums wait, not 2n: 3n-2 loads, 4n-2 stores.  Table 3
    counts 58 loads for n = 20, which are 3n-2, and 81 stores, which no reading of the method needs.
    """
    n = bits // 8
    assert counts("sqr", bits, "sbd", sums="memory", block="2") == (3 * n - 2, 4 * n - 2, n * (n + 1) // 2)


@pytest.mark.simulator
@pytest.mark.parametrize(("bits", "published"), [(128, 1003), (160, 1456), (192, 2014)])
def test_sbd_in_memory_takes_no_more_cycles_than_published(bits: int, published: int) -> None:
    """[SBD13, Table 4]."""
    assert body("sqr", bits, "sbd", sums="memory") <= published


# ---- carry-catcher: the hybrid structure ----------------------------------------------------------------------------


def visits(method: str, n: int, d: int) -> list[tuple[int, int]]:
    """The cells of the plan in the order of their visits."""
    return [(cell.i, cell.j) for cell in compiled("sqr", n, method, d=str(d)).plan.products()]


def in_hybrid_order(n: int, d: int) -> list[tuple[int, int]]:
    """All cells of the triangle by columns of blocks, block by block, row by row."""
    cells = [(i, j) for i in range(n) for j in range(i, n)]
    return sorted(cells, key=lambda cell: (cell[0] // d + cell[1] // d, cell[0] // d, *cell))


@pytest.mark.parametrize(("n", "d"), [(2, 4), (4, 2), (7, 3), (16, 4), (20, 4), (20, 3), (23, 5)])
def test_carry_catcher_visits_blocks_row_by_row_and_doubles_each_product_by_itself(n: int, d: int) -> None:
    """[SBD13, section 2.2]: hybrid scanning; products are doubled before they are added; carries are caught."""
    assert visits("carry-catcher", n, d) == in_hybrid_order(n, d)
    plan = compiled("sqr", n, "carry-catcher", d=str(d)).plan
    assert not any(isinstance(step, Double) for step in plan.steps)
    assert all(cell.times == (1 if cell.i == cell.j else 2) and cell.caught for cell in plan.products())


@pytest.mark.parametrize("bits", [128, 160, 192])
def test_carry_catcher_takes_no_more_loads_than_the_paper_and_its_stores(bits: int) -> None:
    """[SBD13, Table 1] has 2n stores, n^2/2 multiplications (its text: (n^2 + n)/2), 5n loads, which are n^2/d for
    n = 20 and d = 4: every block loads its limbs anew.  Ours keeps what still is in registers."""
    n, d = bits // 8, 4
    loads, stores, products = counts("sqr", bits, "carry-catcher", d=str(d))
    assert (stores, products) == (2 * n, n * (n + 1) // 2)
    assert n <= loads <= n * n // d


@pytest.mark.simulator
@pytest.mark.parametrize(("bits", "published"), [(128, 1365), (160, 2065), (192, 2909)])
def test_carry_catcher_takes_no_more_cycles_than_published(bits: int, published: int) -> None:
    """[SBD13, Table 4]."""
    assert body("sqr", bits, "carry-catcher") <= published
