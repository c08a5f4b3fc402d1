"""The picture shows the plan: every cell once, at its place, in the words and the colours of its block."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from string import ascii_letters

import pytest

from sqgen import draw_svg, draw_text, methods
from sqgen.plan import Block, Plan, Product, Store

SVG = "{http://www.w3.org/2000/svg}"
METHODS = [(op, name) for op in ("sqr", "mul") for name in methods.names(op)]
THREE_SQUARES = ["karatsuba-squaring", "streamed-karatsuba"]
IN_PARTS = ["bordered", "hybrid-karatsuba", "karatsuba", *THREE_SQUARES]  # other plans form some of their cells
WHOLE = [(op, name) for op, name in METHODS if name not in IN_PARTS]
SIZES = [2, 3, 4, 5, 7, 8, 12, 13, 16, 20, 24, 25, 31, 32, 48, 49, 64]
WIDTHS = [24, 40, 80, 100, 200]


def plan(op: str, n: int, name: str) -> Plan:
    return methods.plan(op, n, name, {})


def drawn(plan: Plan) -> dict[str, list[tuple[int, int]]]:
    """(column, height) of each cell of each class `dot` and `ring`, as found in the SVG."""
    found: dict[str, list[tuple[int, int]]] = {"dot": [], "ring": []}
    for path in ET.fromstring(draw_svg.svg(plan)).iter(f"{SVG}path"):
        cls = path.get("class", "").split()[0]
        if cls in found:
            for x, y in re.findall(r"M(-?\d+) (-?\d+)", path.get("d", "")):
                assert int(x) % draw_svg.ACROSS == 0 and int(y) % draw_svg.UP == 0
                found[cls].append((-int(x) // draw_svg.ACROSS, -int(y) // draw_svg.UP))
    return found


def places(plan: Plan) -> list[tuple[int, int]]:
    """(column, height) of each cell of the plan; of longer operands, of those that are not zero."""
    cells = next(plan.parts()).plan.products() if plan.copies else plan.products()
    own = [cell for cell in cells if max(cell.i, cell.j) < plan.limbs]
    return [(p.i + p.j, abs(p.i - p.j) if plan.op == "sqr" else p.i - p.j) for p in own]


def one_level(op: str, n: int, name: str) -> Plan:
    """The plan with parts of which none has parts, and none stands out over what is beside it."""
    inside = {"border": "2"} if name == "bordered" and n > 2 and n % 2 == 0 else {}
    return methods.plan(op, n, name, inside | single(name), single)


def single(name: str, *_: object) -> dict[str, str]:
    """Parameters for one level, where the method has levels."""
    levels = any(parameter.name == "levels" for parameter in methods.method(name).PARAMETERS)
    return {"levels": "1"} if levels else {}


def leaves(plan: Plan) -> int:
    """Cells of a plan and of all that its parts are made of."""
    return sum(1 for _ in plan.products()) + sum(leaves(part.plan) for part in plan.parts())


@pytest.mark.parametrize("n", range(2, 65))
@pytest.mark.parametrize(("op", "name"), [pair for pair in METHODS if pair not in WHOLE])
def test_svg_draws_the_cells_of_all_parts_side_by_side(op: str, name: str, n: int) -> None:
    """One level of parts; those of a second one may lie behind others, see below."""
    made = one_level(op, n, name)
    found = drawn(made)
    everything = found["dot"] + found["ring"]
    assert len(everything) == len(set(everything)) == leaves(made)
    assert all(0 <= column <= 2 * n - 1 and -n < height <= n for column, height in everything)


def test_svg_draws_the_middle_product_in_place_of_the_upper_one_of_two() -> None:
    a_hi_b_lo = {(i + j, i - j) for i in range(4, 8) for j in range(4)}
    low = {(i + j, i - j) for i in range(4) for j in range(4)}
    assert set(drawn(plan("mul", 8, "karatsuba"))["dot"]) == low | {(c + 8, h) for c, h in low} | a_hi_b_lo
    found = drawn(plan("sqr", 8, "karatsuba-squaring"))
    assert set(found["ring"]) == {(2 * i, 0) for i in range(8)} | {(2 * i + 4, 4) for i in range(4)}
    assert len(found["dot"]) == 3 * 6


def test_what_lies_behind_other_cells_is_counted() -> None:
    made = methods.plan("mul", 9, "karatsuba", {"levels": "2"})
    places = drawn(made)["dot"]
    hidden = len(places) - len(set(places))
    assert len(places) == leaves(made) and hidden
    assert f"; {hidden} of them behind others" in draw_text.terminal(made) and "behind" in draw_svg.svg(made)


@pytest.mark.many
@pytest.mark.parametrize("n", range(2, 65))
@pytest.mark.parametrize(("op", "name"), WHOLE)
def test_svg_draws_every_cell_exactly_once(op: str, name: str, n: int) -> None:
    made = plan(op, n, name)
    found = drawn(made)
    everything = Counter(found["dot"] + found["ring"])
    assert set(everything.values()) == {1}
    assert everything == Counter(places(made))
    assert len(everything) == (n * (n + 1) // 2 if op == "sqr" else n * n)


@pytest.mark.parametrize("name", [name for name in methods.names("sqr") if name not in THREE_SQUARES])
def test_svg_draws_the_diagonal_of_a_square_as_rings_and_the_rest_as_dots(name: str) -> None:
    found = drawn(plan("sqr", 9, name))
    assert sorted(found["ring"]) == [(2 * i, 0) for i in range(9)]
    assert all(height > 0 for _, height in found["dot"])


@pytest.mark.parametrize("name", methods.names("mul"))
def test_svg_draws_a_product_without_rings(name: str) -> None:
    assert not drawn(plan("mul", 9, name))["ring"]


@pytest.mark.parametrize(("op", "name"), METHODS)
def test_svg_says_in_words_what_it_shows(op: str, name: str) -> None:
    made = plan(op, 6, name)
    root = ET.fromstring(draw_svg.svg(made))
    title, description = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
    assert title is not None and name in title and "6 limbs" in title
    assert description is not None and all(block in description for block, _ in made.blocks())
    assert root[0].tag == f"{SVG}title" and root[1].tag == f"{SVG}desc"


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("op", "name"), METHODS)
def test_svg_stays_on_its_page(op: str, name: str, n: int) -> None:
    root = ET.fromstring(draw_svg.svg(plan(op, n, name)))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x", "0")) <= width - 20
        assert 0 < float(text.get("y", "1")) < height
    limbs = [element for element in root.iter(f"{SVG}rect") if element.get("class", "").startswith("limb")]
    assert len(limbs) == 2 * n


def test_svg_has_every_number_of_visit_in_a_small_picture_only() -> None:
    def numbers(n: int) -> list[str | None]:
        root = ET.fromstring(draw_svg.svg(plan("sqr", n, "product-scanning")))
        return [text.text for text in root.iter(f"{SVG}text") if text.get("class", "").startswith("number")]

    assert numbers(draw_svg.NUMBERED) == [str(visit + 1) for visit in range(12 * 13 // 2)]
    assert not numbers(draw_svg.NUMBERED + 1)


def test_svg_path_visits_the_cells_in_the_order_of_the_plan() -> None:
    made = plan("sqr", 20, "sbd")
    root = ET.fromstring(draw_svg.svg(made))
    ends: dict[str, str] = {}
    for path in root.iter(f"{SVG}path"):
        if path.get("class") in ("walk", "jump"):
            ends.update(re.findall(r"M(-?\d+ -?\d+)L(-?\d+ -?\d+)", path.get("d", "")))
    order = [f"{-draw_svg.ACROSS * column} {-draw_svg.UP * height}" for column, height in places(made)]
    corner, visited = order[0], [order[0]]
    while corner in ends:
        corner = ends.pop(corner)
        visited.append(corner)
    assert not ends and visited[-1] == order[-1]
    assert visited == [place for place in order if place in visited]


def test_svg_and_text_are_the_same_each_time() -> None:
    made = plan("sqr", 20, "sbd")
    assert draw_svg.svg(made) == draw_svg.svg(plan("sqr", 20, "sbd"))
    assert draw_text.terminal(made) == draw_text.terminal(plan("sqr", 20, "sbd"))


def test_svg_of_128_limbs_is_small_enough_to_send() -> None:
    assert len(draw_svg.svg(plan("mul", 128, "product-scanning"))) < 300_000


def test_svg_and_text_escape_nothing_away_and_let_no_markup_in() -> None:
    made = Plan("mul", 1, "<m>", (("p", "a&b"),), (Block("<b> & co"), Product(0, 0), Store(0), Store(1)))
    root = ET.fromstring(draw_svg.svg(made))
    assert root.findtext(f"{SVG}title") == "<m>, p a&b: product of 1 limbs"
    assert "<b> & co: 1 cell" in draw_text.terminal(made)


def test_svg_asks_for_nothing_from_outside_and_knows_dark_pages() -> None:
    text = draw_svg.svg(plan("sqr", 8, "sbd"))
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "href" not in text and "url(" not in text and " id=" not in text


def test_svg_legend_leaves_out_the_middle_of_many_blocks() -> None:
    assert "more …" not in draw_svg.svg(plan("mul", 24, "operand-scanning"))
    text = draw_svg.svg(plan("mul", 25, "operand-scanning"))
    assert "… 5 more …" in text and ">row 16: 25 cells</text>" in text and ">row 17: 25 cells</text>" not in text


@pytest.mark.many
@pytest.mark.parametrize("sizes", [SIZES, pytest.param([128], marks=pytest.mark.sweep)])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("op", "name"), METHODS)
def test_text_is_no_wider_than_asked(op: str, name: str, width: int, sizes: list[int]) -> None:
    for n in sizes:
        lines = draw_text.terminal(plan(op, n, name), width).splitlines()
        assert max(map(len, lines)) <= width
        assert all(line == line.rstrip() for line in lines)


def cells_in_text(made: Plan, width: int) -> list[str]:
    """The lines of the picture proper, from the second line on down to the result."""
    lines = draw_text.terminal(made, width).splitlines()
    return lines[3 : next(number for number, line in enumerate(lines) if line.startswith("C "))]


@pytest.mark.parametrize("n", range(2, 49))
@pytest.mark.parametrize(("op", "name"), [pair for pair in METHODS if pair not in WHOLE])
def test_text_of_up_to_48_limbs_shows_the_cells_of_all_parts(op: str, name: str, n: int) -> None:
    made = one_level(op, n, name)
    letters = [character for line in cells_in_text(made, 100) for character in line if character.isalpha()]
    assert len(letters) == leaves(made)


@pytest.mark.parametrize("n", range(2, 49))
@pytest.mark.parametrize(("op", "name"), WHOLE)
def test_text_of_up_to_48_limbs_shows_every_cell(op: str, name: str, n: int) -> None:
    made = plan(op, n, name)
    letters = Counter(character for line in cells_in_text(made, 100) for character in line if character.isalpha())
    wanted: Counter[str] = Counter()
    counts = [len(places(made))] if made.copies else [len(cells) for _, cells in made.blocks()]
    for number, count in enumerate(counts):
        wanted[ascii_letters[number % 52]] += count
    assert letters == wanted


@pytest.mark.parametrize("n", [4, 24, 25, 48])
def test_text_marks_the_cells_that_count_once(n: int) -> None:
    *above, diagonal, _ = cells_in_text(plan("sqr", n, "sbd"), 100)
    assert len(re.findall(r"\*[a-zA-Z]", diagonal)) == n
    assert "*" not in "".join(above)
    assert "*" not in "".join(cells_in_text(plan("mul", n, "operand-scanning"), 100))


def test_text_of_four_limbs() -> None:
    assert draw_text.terminal(plan("sqr", 4, "sbd")) == (
        "sbd, block 4: square of 4 limbs\n"
        "10 cells in 2 blocks: 6 count twice, 4 once\n"
        "\n"
        "            a\n"
        "          a   a\n"
        "        b   a   a\n"
        "     *b  *a  *a  *a\n"
        "\n"
        "C   b b b a a a a a\n"
        "    7 6 5 4 3 2 1 0\n"
        "\n"
        "right corner [0]*[0], left [3]*[3], top A[0]*A[3]\n"
        "C: the block that stores it last\n"
        "a counts twice, *a once\n"
        "a  block of columns 0..4: 8 cells   b  block of columns 5..7: 2 cells\n"
    )


def test_text_says_when_a_character_is_several_cells() -> None:
    text = draw_text.terminal(plan("mul", 64, "product-scanning"))
    assert "up to 4 cells" in text and "128 blocks: the letters repeat" in text and "… 108 more …" in text


def test_a_square_by_a_method_for_products_is_a_rhombus_of_one_operand() -> None:
    made = plan("sqr", 9, "operand-caching")
    found = drawn(made)
    assert sorted(found["dot"]) == sorted((i + j, i - j) for i in range(9) for j in range(9)) and not found["ring"]
    text = draw_text.terminal(made)
    assert "81 cells" in text and "A[8]*A[0]" in text and "twice" not in text
    assert "B[" not in text and ">B[" not in draw_svg.svg(made)
