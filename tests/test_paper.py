"""`sqgen paper`: what the papers print, ours beside it."""

from __future__ import annotations

import csv
import functools
import io
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from commandline import Call
from conftest import kernel

from sqgen import emit, methods, paper, progress, reproduce
from sqgen.errors import Exit
from sqgen.formula import FormulaError, evaluate
from sqgen.paper import Row, Table
from sqgen.plan import Load, Store
from sqgen.reproduce import Measured, Reproduction
from sqgen.timing import body_counts

DOCS = Path(__file__).parent.parent / "docs"
ALL = [table for key in paper.known() for table in paper.tables(key)]
each_table = pytest.mark.parametrize("table", ALL, ids=lambda table: f"{table.paper}-{table.name}-{table.holds[:12]}")


def rows(key: str, name: str) -> dict[str, Row]:
    (table,) = paper.find(key, name)
    return {row.label: row for row in table.rows}


def ints(figures: Mapping[str, Fraction]) -> dict[str, int]:
    assert all(value.denominator == 1 for value in figures.values())
    return {name: int(value) for name, value in figures.items()}


def errata(*words: str) -> list[str]:
    """The lines of docs/errata.md that hold all words."""
    lines = (DOCS / "errata.md").read_text().splitlines()
    return [line for line in lines if all(word in line for word in words)]


measure = functools.cache(reproduce.measure)


def filled(table: Table) -> Reproduction:
    return reproduce.fill(table, {request: measure(request) for request in reproduce.requests(table)})


def unmeasured(table: Table) -> Reproduction:
    """The paper's side alone."""
    return reproduce.fill(table, dict.fromkeys(reproduce.requests(table), Measured({}, "not measured")))


# ---- the files ------------------------------------------------------------------------------------------------------


@each_table
def test_a_table_is_complete_and_names_only_columns_that_it_has(table: Table) -> None:
    assert f"| {table.paper} |" in (DOCS / "bibliography.md").read_text()
    assert table.title and table.holds and table.place and table.rows
    measures = {*reproduce.CLASSES, "total", "bytes"}
    named = {*table.decimals, *table.computed, *table.kernels}
    for row in table.rows:
        named |= {*row.printed, *row.formulas, *row.derived}
        assert row.bits or row.summary in reproduce.SUMMARIES, row.label
        assert not row.ours or set(table.columns) <= measures | set(table.computed), row.label
        assert not set(row.printed) & set(row.derived), f"{row.label}: derived though printed"
        assert table.missing or row.printed or row.formulas, row.label
    assert named <= set(table.columns)
    assert {reason.than for reason in table.reasons} <= {"fewer", "more"}


@each_table
def test_printed_figures_have_the_decimals_that_the_table_shows(table: Table) -> None:
    for row in table.rows:
        for column, value in row.printed.items():
            assert reproduce.rounded(value, table.decimals.get(column, 0)) == value, (row.label, column)


# ---- the papers' own arithmetic -------------------------------------------------------------------------------------


def test_the_parts_of_sbd13_table_3_make_its_totals_but_for_the_rows_in_the_errata() -> None:
    for name, row in rows("SBD13", "Table 3").items():
        part = ints(row.printed)
        made = 2 * (part["load"] + part["store"] + part["mul"]) + part["add"] + part["shift"] + part["others"]
        listed = errata("[SBD13]", f"Table 3, {name} ", str(made))
        assert bool(listed) == (made != part["total"]), name
    assert part["total"] == 1456  # the last row is the paper's own method


@each_table
def test_what_a_paper_computes_from_its_own_figures_is_right_or_in_the_errata(table: Table) -> None:
    found = {fault.row for fault in reproduce.faults(table)}
    for row in table.rows:
        assert bool(errata(f"[{table.paper}]", f"{table.name}, {row.label}")) == (row.label in found), row.label


def test_a_fault_is_found() -> None:
    (fault,) = reproduce.faults(*paper.find("SBD13", "Table 2"))
    assert (fault.row, fault.column, fault.printed, fault.given) == (
        "192-bit",
        "alpha",
        Fraction(107, 100),
        Fraction(27, 25),
    )


def test_the_cost_formula_of_sbd13_gives_its_estimates() -> None:
    formula = rows("SBD13", "Table 1")["Our method (SBD), 128 bits"].formulas["total"]
    for name, row in rows("SBD13", "Table 2").items():
        given = evaluate(formula, {"n": Fraction(row.bits, 8), "alpha": Fraction(1)})
        assert given == row.printed["CE"], name


def test_the_formulas_of_sbd13_give_its_measured_cycles_but_for_those_in_the_errata() -> None:
    wrong = []
    for row in rows("SBD13", "Table 1").values():
        printed = rows("SBD13", "Table 4")[f"{row.bits} bits"].printed
        method = re.sub(r".*\((\w+)\)", r"\1", row.name)
        if method != "SBD" and evaluate(row.formulas["total"], {"n": Fraction(row.bits, 8)}) != printed[method]:
            wrong.append((method, row.bits))
    assert wrong == [("CC", 128), ("CC", 160), ("CC", 192), ("LD", 160)]
    assert errata("Table 1, CC, total", "9/2 n^2 + 13n + 5") and errata("Table 1, LD", "1525", "1509")
    for bits in (128, 160, 192):
        right = evaluate("9/2*n^2 + 13*n + 5", {"n": Fraction(bits, 8)})
        assert right == rows("SBD13", "Table 4")[f"{bits} bits"].printed["CC"]


def test_the_counts_of_operand_caching_in_sbd13_are_those_derived_for_coc15() -> None:
    printed, derived = rows("SBD13", "Table 3"), unmeasured(*paper.find("COC15", "Table 1")).rows
    for name, other in (
        ("Hutter et al. (U-L)", "Operand caching"),
        ("Seo et al. (U-L)", "Consecutive operand caching"),
    ):
        (result,) = [result for result in derived if result.row.label == other]
        for column in ("load", "store"):
            assert result.derived[column] == printed[name].printed[column]


@pytest.mark.parametrize("name", ["Operand caching", "Consecutive operand caching"])
def test_derived_loads_and_stores_are_those_of_the_methods_plan(name: str) -> None:
    """The plan has every store and every load of a stored limb; operand limbs are counted here, row by row."""
    row = rows("COC15", "Table 1")[name]
    (ours,) = row.ours
    e = int(dict(ours.parameters)["e"])
    for n in range(e + 1, 4 * e + 2):
        steps = methods.plan("mul", n, ours.method, {"e": str(e)}).steps
        stores = sum(isinstance(step, Store) for step in steps)
        back = sum(isinstance(step, Load) for step in steps)
        names = {"n": Fraction(n)}
        for key, formula in row.where.items():
            names[key] = evaluate(formula, names)
        if name == "Operand caching":  # in each row every limb that is stored has one operand limb walking by or cached
            operands = sum(2 * (n - start) for start in range(0, n, e))
        else:  # the top; then each row n limbs, without the ones it shares with the row before
            rest = n - e * ((n - 1) // e)
            operands = 2 * rest + (n - 1) // e * n + n - rest
        assert evaluate(row.derived["store"], names) == stores, n
        assert evaluate(row.derived["load"], names) == operands + back, n


def test_our_stores_are_those_derived_for_coc15() -> None:
    for result in filled(*paper.find("COC15", "Table 2")).rows:
        for mine in result.mine:
            assert mine.absent or mine.figures["store"] == result.derived["store"], result.row.label


def test_coc15s_first_gain_is_the_one_of_sbd13_for_160_bits() -> None:
    table = rows("SBD13", "Table 3")
    before, after = (table[f"{who} et al. (U-L)"].printed["total"] for who in ("Hutter", "Seo"))
    assert (
        reproduce.rounded(100 * (1 - after / before), 2) == rows("COC15", "Table 3")["mean of the sizes"].printed["co"]
    )


def test_two_squarings_of_hks15_load_each_limb_and_the_product_once_and_store_two_results() -> None:
    found = [row for row in rows("HKS", "Section 4.3").values() if row.name.startswith("two SBD")]
    assert [row.bits for row in found] == [64, 80, 96, 128]
    for row in found:
        n = row.bits // 8
        assert ints(row.printed) == {"load": 2 * (n + n), "store": 2 * 2 * n}


def test_the_branch_free_figure_of_hks15_follows_from_what_its_text_prints() -> None:
    (result,) = [each for each in unmeasured(paper.find("HKS", "Table 1")[0]).rows if each.row.bits == 256]
    assert result.derived["f"] == 3295 and "f" not in result.printed


# ---- ours -----------------------------------------------------------------------------------------------------------


def test_body_counts_are_the_instructions_that_the_assembly_shows() -> None:
    classes = {
        "load": "ld ldd",
        "store": "st std",
        "mul": "mul",
        "add": "add adc sub sbc subi sbci adiw sbiw",
        "shift": "lsl rol lsr ror bst bld",
    }
    for op, method in (("sqr", "sbd"), ("sqr", "yang"), ("mul", "operand-caching")):
        made = kernel(op, 160, method)
        shown = Counter(re.findall(r"^    ([a-z]+)\b", emit.assembly(made), re.MULTILINE))
        counts = body_counts(made.spec.contract.isa, made.compiled.image, made.verdict.path)
        for name, mnemonics in classes.items():
            assert counts[name] == sum(shown[mnemonic] for mnemonic in mnemonics.split()), (method, name)
        assert shown["push"] == shown["pop"] > 0 and counts["save"] == counts["restore"] == 0


def test_ours_add_up_to_the_body_cycles_of_the_kernel() -> None:
    for result in filled(*paper.find("SBD13", "Table 3")).rows:
        for mine in result.mine:
            if mine.figures:
                part = ints(mine.figures)
                made = 2 * (part["load"] + part["store"] + part["mul"]) + part["add"] + part["shift"] + part["others"]
                assert made == part["total"] and part["others"] >= 0, mine.label
                if mine.label == "sbd":
                    assert part["total"] == kernel("sqr", 160, "sbd").price.body


@each_table
def test_every_difference_has_a_reason(table: Table) -> None:
    records = list(reproduce.records(filled(table)))
    assert [record for record in records if record["why"] == "not explained"] == []


def test_a_difference_in_the_other_direction_has_no_reason() -> None:
    """Reasons say whether they explain more or fewer: a wrong one is not shown."""
    (table,) = paper.find("SBD13", "Table 2")
    measured = {request: Measured({"total": Fraction(9999)}) for request in reproduce.requests(table)}
    found = {
        record["why"] for record in reproduce.records(reproduce.fill(table, measured)) if record["figure"] == "C_I"
    }
    assert found == {"not explained"}


# ---- the command ----------------------------------------------------------------------------------------------------


def test_the_list_names_every_table(sqgen: Call) -> None:
    listed = json.loads(sqgen("paper --json").out)
    assert [(entry["paper"], entry["table"], entry["title"]) for entry in listed] == [
        (table.paper, table.names, table.title) for table in ALL
    ]
    assert {(table.paper, table.name) for table in ALL} == {
        *(("SBD13", f"Table {number}") for number in (1, 2, 3, 4)),
        *(("COC15", f"Table {number}") for number in (1, 2, 3, 4)),
        *(("HKS", name) for name in ("Table 1", "Section 4.3")),
    }
    text = sqgen("paper")
    assert (text.code, text.err) == (0, "") and all(table.name in text.out for table in ALL)
    assert len(list(csv.DictReader(io.StringIO(sqgen("paper --csv").out)))) == len(ALL)
    assert sqgen("paper --markdown").out.count("\n| ") == len(ALL) + 1


def test_a_table_shows_the_papers_figures_ours_and_why_they_differ(sqgen: Call) -> None:
    run = sqgen("paper SBD13 --table 3")
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert max(map(len, lines)) <= 100
    at = next(index for index, line in enumerate(lines) if line.split()[:2] == ["Yang", "et"])
    printed, ours, differs = (re.findall(r"[-+]?\d+|=", line) for line in lines[at : at + 3])
    assert printed == ["468", "280", "210", "909", "40", "244", "3009"]
    assert ours[-1] == str(kernel("sqr", 160, "yang").price.body)
    assert [int(o) - int(p) for o, p in zip(ours, printed, strict=True)] == [int(d.replace("=", "0")) for d in differs]
    assert "Why ours differ" in run.out and "Yang et al.: others is printed as 244" in run.out


def test_json_and_csv_hold_the_same_figures(sqgen: Call) -> None:
    (document,) = json.loads(sqgen("paper SBD13 --table 4 --json").out)
    records = list(csv.DictReader(io.StringIO(sqgen("paper SBD13 --table 4 --csv").out)))
    assert [
        {name: "" if value is None else str(value) for name, value in each.items()} for each in document["figures"]
    ] == records
    printed = {(record["row"], record["figure"]): record["printed"] for record in document["figures"]}
    assert printed["192 bits", "LD"] == 2107 and printed["128 bits", "1 - SBD/CC, %"] == 26.52


def test_markdown_is_a_table_of_equal_rows(sqgen: Call) -> None:
    out = sqgen("paper SBD13 --table 2 --markdown").out
    table = [line for line in out.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1 and len(table) > 2 + 3
    assert table[1].startswith("| --- | ---:")


@pytest.mark.parametrize("name", ["'Figure 6'", "'figure 6'", "'Table 4'", "4"])
def test_a_table_is_found_by_any_of_its_names(sqgen: Call, name: str) -> None:
    (document,) = json.loads(sqgen(f"paper sbd13 --table {name} --json").out)
    assert document["table"] == "Table 4, Figure 6"


def test_what_our_copy_does_not_print_is_no_number(sqgen: Call) -> None:
    (document,) = json.loads(sqgen("paper COC15 --table 4 --json").out)
    assert document["missing"] and {record["printed"] for record in document["figures"]} == {None}
    assert " ? " in sqgen("paper COC15 --table 4").out


def test_a_method_that_is_not_here_leaves_the_papers_figures(sqgen: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "names", lambda op=None: [])
    run = sqgen("paper SBD13 --table 3")
    assert run.code == 0 and "sbd: no method here" in run.out and "yang: not here" in run.out and "1456" in run.out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("paper SDB13", "did you mean 'SBD13'?"),
        ("paper ../sbd13", "no tables of a paper"),
        ("paper SBD13 --table 9", "did you mean 'Table"),
        ("paper SBD13 --table 'Figure 5'", "did you mean 'Figure 6'?"),
        ("paper SBD13 --table ''", "empty"),
        ("paper --table 3", "say whose table"),
        ("paper --json --csv", "--json, --csv and --markdown"),
        ("paper SBD13 --csv --markdown", "--json, --csv and --markdown"),
    ],
)
def test_what_makes_no_sense_is_refused(refused: Callable[..., str], line: str, says: str) -> None:
    assert says in refused(Exit.USAGE, line)


def test_the_start_imports_neither_tables_nor_the_compiler() -> None:
    program = (
        "import sys\nfrom sqgen.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass\n"
        "print(*sorted({'sqgen.paper', 'sqgen.reproduce', 'sqgen.kernel', 'sqgen.tables', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == [""]


# ---- progress -------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, patience: float) -> str:
    """What goes to `stream` as stderr while three items take a little time."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setattr(sys, "stderr", stream)

    def slowly() -> Iterator[int]:
        for item in progress.tracked([1, 2, 3], "kernels"):
            time.sleep(0.02)
            yield item

    assert list(slowly()) == [1, 2, 3]
    return stream.getvalue()


def test_only_a_terminal_and_only_slow_work_shows_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "kernels" in shown(Terminal(), monkeypatch, 0.01)
    assert shown(Terminal(), monkeypatch, 60) == ""
    assert shown(io.StringIO(), monkeypatch, 0.01) == ""


@pytest.mark.usefixtures("threadless")
def test_where_no_thread_can_be_started_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    shown(Terminal(), monkeypatch, 0.01)  # asserts that all is done


def test_formulas_are_exact_and_nothing_else_is_one() -> None:
    assert evaluate("(5*n^2 + 36*n)/2", {"n": Fraction(20)}) == 1360
    assert evaluate("ceil(n/3) - floor(n/3) + 0.1*10", {"n": Fraction(4)}) == 2
    with pytest.raises(KeyError):
        evaluate("n + m", {"n": Fraction(1)})
    for text in ("n +", "__import__('os')", "n if n else 1", "'n'", "n.real"):
        with pytest.raises(FormulaError):
            evaluate(text, {"n": Fraction(1)})
