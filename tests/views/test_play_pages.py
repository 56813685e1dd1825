"""Playables as learners use them: dragging, typing, keys, a phone, languages, light and dark, axe-core."""

import numpy as np
import pytest

import regard
from regard.kernels import reference
from regard.lessons.playable_pages import write_playables
from regard.lessons.sentence_explanation import attend_sentence
from regard.texts import read_table
from regard.translator import embedded
from regard.translator.translate_text import count_parameters
from regard.views.play import PLAYABLES, CourseLinks
from views.axe import RULES, violations
from views.browser import until

PHONE = {"width": 390, "height": 844}
PAGES = [one.page for one in PLAYABLES.values()]

NAMES = """[...document.querySelectorAll("button, select, input, textarea, a[href], [tabindex='0']")]
  .filter((element) => element.checkVisibility())
  .map((element) => element.getAttribute("aria-label") ?? (element.labels?.[0] ?? element).textContent)
  .map((name) => name.trim())"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("play")
    write_playables(place)
    write_playables(place / "zh", lang="zh")
    return place


@pytest.fixture
def play(opened, folder):
    """Opens a page by its name; its policy holds, so nothing may be injected."""

    def open_play(page, **options):
        lang = options.pop("lang", "en")
        file = folder / ("zh" if lang == "zh" else "") / f"play-{page}.html"
        return opened(file, **options).page

    return open_play


def numbers(page, selector):
    """The numbers of some cells, as they are shown."""
    texts = page.locator(selector).all_inner_texts()
    return [float(text.replace("−", "-")) for text in texts]


# ---- every page ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_of_a_page_allows_its_program_and_nothing_else(play, name):
    page = play(name, bypass_csp=False)
    assert page.locator("h1").inner_text()
    assert page.evaluate("document.querySelectorAll('main > *').length") >= 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_no_serious_violation(play, name, scheme):
    page = play(name, color_scheme=scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert violations(page, *RULES[scheme]) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_cuts_nothing_off(play, name):
    page = play(name, viewport=PHONE, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    small = """[...document.querySelectorAll("main *, header *")]
      .filter((one) => one.checkVisibility() && one.childNodes.length && !one.closest("math, svg, canvas")
        && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
      .filter((one) => parseFloat(getComputedStyle(one).fontSize) < 12)
      .map((one) => one.outerHTML.slice(0, 80))"""
    assert page.evaluate(small) == []


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("viewport", [{"width": 1200, "height": 1000}, PHONE], ids=["desktop", "phone"])
def test_the_names_of_the_lines_in_the_chart_are_not_cut_off(play, viewport, lang):
    page = play("masks", lang=lang, viewport=viewport)
    cut = """[...document.querySelectorAll(".cost-chart .name")].filter((name) => {
      const chart = name.closest("svg");
      const room = getComputedStyle(chart).overflow === "visible" ? chart.closest(".card") : chart;
      return name.getBoundingClientRect().right > room.getBoundingClientRect().right;
    }).map((name) => name.textContent)"""
    until(page, "document.querySelectorAll('.cost-chart .name').length === 3")
    assert page.evaluate(cut) == []


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_every_text_is_in_the_language_of_the_page(play, name, lang):
    page = play(name, lang=lang)
    assert page.evaluate("document.documentElement.lang") == {"en": "en", "zh": "zh-CN"}[lang]
    shown = page.locator("body").inner_text()
    assert read_table("play", lang)[f"{name}.lead"] in shown
    keys = {key for key in read_table("play", "en") if "." in key} | {"explain."}
    assert not [key for key in keys if key in shown]  # a key without a text would be shown itself
    assert "undefined" not in shown
    assert "NaN" not in shown


@pytest.mark.parametrize("name", PAGES)
def test_language_and_theme_can_be_switched_and_keep_what_was_done(play, name):
    page = play(name, color_scheme="light")
    page.click("[data-tool=language]")
    assert page.locator("h1").inner_text() == read_table("play", "zh")[f"{name}.title"]
    assert page.evaluate("document.activeElement.dataset.tool") == "language"
    page.click("[data-tool=theme]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("name", PAGES)
def test_every_control_has_a_name(play, name):
    assert all(play(name).evaluate(NAMES))


def test_pages_link_to_each_other(play, folder):
    page = play("masks")
    links = page.evaluate("[...document.querySelectorAll('nav a[href]')].map((a) => a.getAttribute('href'))")
    assert sorted([*links, "play-masks.html"]) == sorted(one.file for one in PLAYABLES.values())
    assert all((folder / link).exists() for link in links)


def test_on_a_site_a_page_links_back_to_the_course(opened, tmp_path):
    titles = {"en": "1 · One query", "zh": "1 · 一个查询"}
    course = CourseLinks(
        {lang: f"{lang}/index.html" for lang in titles},
        {lang: [(title, f"{lang}/lesson.html")] for lang, title in titles.items()},
    )
    (file,) = write_playables(tmp_path, ["query"], courses={"play-one-query.html": course})
    page = opened(file).page
    for lang in titles:
        assert page.get_attribute("a.brand", "href") == f"{lang}/index.html"
        link = page.get_by_role("link", name=titles[lang])
        assert link.get_attribute("href") == f"{lang}/lesson.html"
        assert violations(page) == []
        page.click("[data-tool=language]")


@pytest.mark.parametrize("playable", PLAYABLES.values(), ids=PAGES)
def test_alone_a_page_names_its_lessons(play, playable):
    page = play(playable.page)
    assert page.locator(".lessons a, a.brand").count() == 0
    assert page.locator("b.brand").inner_text() == "regard"
    for lang in ("en", "zh"):
        texts = read_table("play", lang)
        wanted = [texts[f"lesson.{number}"] for number in playable.lessons]
        assert page.locator(".lessons span").all_inner_texts() == wanted
        assert page.locator(".lessons").inner_text().startswith(texts["lessons.alone"])
        page.click("[data-tool=language]")


# ---- one query -------------------------------------------------------------------------------

WEIGHTS = ".key-row:not(.head) .weight b"


def reference_weights(page):
    state = page.evaluate("regard.state")
    scale = 1 / state["temperature"] / (np.sqrt(2) if state["scaled"] else 1)
    return reference.attention([state["query"]], state["keys"], state["keys"], scale=scale)


def drag(page, selector, right, down):
    box = page.locator(selector).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right / 2, y + down / 2)
    page.mouse.move(x + right, y + down)
    page.mouse.up()


@pytest.mark.parametrize("handle", [".handle.query .knob", ".handle.key .knob >> nth=1"])
def test_dragging_moves_an_arrow_and_the_weights_follow(play, handle):
    page = play("one-query", viewport={"width": 1200, "height": 1000})
    before = page.evaluate("JSON.stringify([regard.state.query, regard.state.keys])")
    drag(page, handle, 120, 90)
    assert page.evaluate("JSON.stringify([regard.state.query, regard.state.keys])") != before
    wanted = reference_weights(page)
    np.testing.assert_allclose(numbers(page, WEIGHTS), wanted["weights"][0], atol=6e-4)
    place = page.evaluate(
        "document.querySelector('.plane .output').getAttribute('transform').match(/[-\\d.]+/g).map(Number)"
    )
    np.testing.assert_allclose(place, wanted.output[0] * [100, -100], atol=1e-6)


def test_a_finger_can_drag_too(play):
    page = play("one-query", viewport=PHONE, has_touch=True)
    before = page.evaluate("regard.state.query")
    page.evaluate(
        """(() => {
          const tip = document.querySelector(".handle.query");
          const box = tip.querySelector(".knob").getBoundingClientRect();
          const at = (type, x, y) => tip.dispatchEvent(new PointerEvent(type,
            { pointerId: 1, pointerType: "touch", clientX: x, clientY: y, bubbles: true }));
          tip.setPointerCapture = () => {};
          tip.hasPointerCapture = () => true;
          at("pointerdown", box.x, box.y);
          at("pointermove", box.x + 40, box.y + 30);
        })()"""
    )
    after = page.evaluate("regard.state.query")
    assert after[0] > before[0]
    assert after[1] < before[1]


def test_arrow_keys_move_what_has_the_focus(play):
    page = play("one-query")
    page.focus(".handle.query")
    x, y = page.evaluate("regard.state.query")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    assert page.evaluate("regard.state.query") == pytest.approx([x + 0.05, y + 0.5])
    label = page.get_attribute(".handle.query", "aria-label")
    assert f"{x + 0.05:.2f}" in label
    np.testing.assert_allclose(numbers(page, WEIGHTS), reference_weights(page)["weights"][0], atol=6e-4)


def test_a_low_temperature_saturates(play):
    page = play("one-query")
    slider = page.get_by_label("Temperature")
    slider.focus()
    page.keyboard.press("Home")
    low = numbers(page, WEIGHTS)
    page.keyboard.press("End")
    high = numbers(page, WEIGHTS)
    assert max(low) > 0.95
    assert max(high) - min(high) < 0.25


def test_without_the_root_the_gradient_vanishes(play):
    page = play("one-query")
    page.get_by_label("Dimension").focus()
    page.keyboard.press("End")
    assert "gone" not in page.get_attribute(".meter", "class")
    page.get_by_label("Divide by √d").uncheck()
    assert "gone" in page.get_attribute(".meter", "class")
    assert read_table("play", "en")["one-query.gradient.gone"] in page.locator(".meter").inner_text()


def test_the_vectors_of_the_lesson_give_its_numbers(play):
    page = play("one-query")
    page.get_by_role("button", name="by hand").click()
    assert numbers(page, ".key-row:not(.head) .dot") == [1.25, 1.1, 1.0]
    assert numbers(page, ".key-row:not(.head) .score") == [0.88, 0.78, 0.71]
    assert numbers(page, WEIGHTS) == [0.365, 0.329, 0.306]
    assert page.locator(".key-row:not(.head) .key").all_inner_texts() == ["我", "喜欢", "AI"]
    page.get_by_role("button", name="Remove a key").click()
    page.get_by_role("button", name="Add a key").click()
    assert page.locator(".key-row:not(.head) .key").all_inner_texts() == ["我", "喜欢", "key 3"]


@pytest.mark.parametrize("viewport", [{"width": 1200, "height": 1000}, PHONE])
@pytest.mark.parametrize("preset", ["Spread out", "by hand"])
def test_labels_on_the_plane_lie_neither_on_each_other_nor_on_a_point(play, preset, viewport):
    page = play("one-query", viewport=viewport)
    page.get_by_role("button", name=preset).click()
    overlapping = """() => {
      const boxes = [...document.querySelectorAll(".plane .label")].map((one) => one.getBoundingClientRect());
      const knobs = [...document.querySelectorAll(".plane .knob")].map((one) => one.getBoundingClientRect());
      return boxes.flatMap((one, at) => [...boxes.slice(0, at), ...knobs].filter((other) =>
        one.left < other.right && other.left < one.right
        && one.top < other.bottom && other.top < one.bottom));
    }"""
    assert page.evaluate(overlapping) == []


def test_keys_are_added_and_removed_and_can_have_values(play):
    page = play("one-query")
    page.get_by_role("button", name="Add a key").click()
    assert len(numbers(page, WEIGHTS)) == 4
    page.get_by_role("button", name="Remove a key").click()
    page.get_by_role("button", name="Remove a key").click()
    assert len(numbers(page, WEIGHTS)) == 2
    assert page.get_by_role("button", name="Remove a key").is_disabled()
    page.get_by_label("its own value").check()
    assert page.locator(".handle.value").count() == 2
    state = page.evaluate("regard.state")
    wanted = reference.attention([state["query"]], state["keys"], state["values"]).output[0]
    place = page.evaluate(
        "document.querySelector('.plane .output').getAttribute('transform').match(/[-\\d.]+/g).map(Number)"
    )
    np.testing.assert_allclose(place, wanted * [100, -100], atol=1e-6)


# ---- a sentence ------------------------------------------------------------------------------


def grid(page, step, head=0):
    """The numbers of a step as the page shows them; −∞ where it says so."""
    rows = page.evaluate(
        """([step, head]) => {
          const table = document.querySelectorAll(`.of-${step} table`)[head];
          const shown = (cell) => (cell.matches("input") ? cell.value : cell.textContent);
          return [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll(".cell")].map(shown));
        }""",
        [step, head],
    )
    return np.array([[float(text.replace("−", "-").replace("∞", "inf")) for text in row] for row in rows])


STEPS = [
    "x",
    "w_q",
    "queries",
    "w_k",
    "keys",
    "w_v",
    "values",
    "dots",
    "scores",
    "weights",
    "heads",
    "w_o",
    "output",
]


def test_the_sentence_begins_with_the_numbers_of_explain(play):
    page = play("sentence")
    lesson = attend_sentence("I love AI")
    for step in STEPS:
        wanted = lesson.trace[step]
        np.testing.assert_allclose(grid(page, step), wanted[0] if wanted.ndim == 3 else wanted, atol=6e-4)
    explanation = regard.explain("I love AI")
    titles = [" ".join(title.split()) for title in page.locator(".step h3").all_inner_texts()]
    for place, (step, title) in enumerate(zip(explanation.steps, titles, strict=True), 1):
        assert title.startswith(f"{place} {step.title}")


def shown_reference(page, **options):
    state = page.evaluate("regard.state")
    x = grid(page, "x")
    w = [np.array(state["matrices"][name]) for name in ("w_q", "w_k", "w_v", "w_o")]
    return reference.multi_head(x, *w, heads=state["heads"], **options)


def test_typing_words_recomputes_every_step(play):
    page = play("sentence")
    page.fill(".sentence-input", "I love love you")
    x = grid(page, "x")
    assert x.shape == (4, 4)
    np.testing.assert_array_equal(x[1], x[2])
    np.testing.assert_allclose(x[0], attend_sentence("I love AI").x[0], atol=6e-4)
    np.testing.assert_allclose(grid(page, "output"), shown_reference(page).output, atol=3e-3)
    page.fill(".sentence-input", "  ")
    assert "at least one word" in page.locator("main").inner_text()
    page.fill(".sentence-input", "word " * 40)
    assert "first 16 words" in page.locator("main").inner_text()
    assert grid(page, "weights").shape == (16, 16)


def test_a_cell_is_typed_over_and_changed_by_keys(play):
    page = play("sentence")
    cell = page.locator(".of-w_q .cell").first
    cell.fill("1.5")
    assert page.evaluate("regard.state.matrices.w_q[0][0]") == 1.5
    np.testing.assert_allclose(grid(page, "output"), shown_reference(page).output, atol=3e-3)
    cell.press("ArrowUp")
    cell.press("Shift+ArrowDown")
    assert page.evaluate("regard.state.matrices.w_q[0][0]") == pytest.approx(0.6)
    cell.fill("much")
    assert cell.get_attribute("aria-invalid") == "true"
    assert page.evaluate("regard.state.matrices.w_q[0][0]") == pytest.approx(0.6)
    cell.press("Enter")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.of-w_q .cell')[4]")
    page.locator(".of-x .cell").first.fill("-2")
    np.testing.assert_allclose(grid(page, "output"), shown_reference(page).output, atol=3e-3)


def test_colours_show_values(play):
    page = play("sentence")
    cell = page.locator(".of-w_q .cell").first
    colours = []
    for value in ("-2", "0", "2"):
        cell.fill(value)
        colours.append(cell.evaluate("(one) => getComputedStyle(one).backgroundColor"))
    assert len(set(colours)) == 3


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_a_mask_heads_and_the_picture(play, heads):
    page = play("sentence")
    page.fill(".sentence-input", "we all like cats")
    page.get_by_role("group", name="Heads").get_by_role("button", name=str(heads), exact=True).click()
    page.fill(".mask-input", "causal & window(1, 0)")
    mask = regard.masks.parse("causal & window(1, 0)")
    wanted = shown_reference(page, mask=mask)
    for head in range(heads):
        np.testing.assert_allclose(grid(page, "weights", head), wanted["weights"][head], atol=3e-3)
        np.testing.assert_array_equal(np.isinf(grid(page, "masked", head)), ~mask.dense(4).numpy())
    assert page.locator(".mask-small canvas").is_visible()
    page.fill(".mask-input", "causal & widow(1, 0)")
    assert "Did you mean window?" in page.locator(".mask-problem").inner_text()
    assert page.locator(".marked mark").inner_text() == "w"
    page.fill(".mask-input", "documents([0, 1])")
    assert "needs one id per position" in page.locator(".mask-problem").inner_text()


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary", "alibi"])
def test_positions_make_equal_words_differ(play, kind):
    page = play("sentence")
    page.fill(".sentence-input", "go go go")
    np.testing.assert_allclose(grid(page, "weights"), np.full((3, 3), 1 / 3), atol=6e-4)
    page.get_by_label("Positions").select_option(kind)
    # The slope of ALiBi with one head is 1/256.
    assert np.ptp(grid(page, "weights")) > (0.002 if kind == "alibi" else 0.01)


def evaluated(text):
    """The sum of a line such as “0.5 × (−1.2) + 2 × 3”."""
    total = 0.0
    for term in text.replace("−", "-").split("+"):
        one, other = (float(part.strip(" ()")) for part in term.split("×"))
        total += one * other
    return total


@pytest.mark.parametrize("step", ["queries", "values", "dots", "heads", "output"])
def test_pointing_at_a_number_shows_the_numbers_it_came_from(play, step):
    page = play("sentence")
    cell = page.locator(f".of-{step} .cell").nth(4)
    cell.hover()
    terms = page.locator(".origin .term:not(.result)").all_inner_texts()
    value = float(cell.inner_text().replace("−", "-"))
    assert evaluated(" ".join(terms)) == pytest.approx(value, abs=4e-3)
    assert page.locator(".origin .result b").inner_text() == cell.inner_text()
    assert page.locator(".cell.source").count() == 2 * len(terms)
    assert page.locator(".cell.pointed").count() == 1


@pytest.mark.parametrize(
    "options", [("none", 1), ("none", 2), ("rotary", 2), ("sinusoidal", 1), ("alibi", 4)]
)
def test_every_number_has_an_origin_that_gives_it(play, options):
    """The rule of each cell gives the number that is in the cell, and its sources exist."""
    kind, heads = options
    page = play("sentence")
    page.get_by_role("group", name="Heads").get_by_role("button", name=str(heads), exact=True).click()
    page.get_by_label("Positions").select_option(kind)
    page.fill(".mask-input", "causal")
    wrong = page.evaluate(
        """() => [...document.querySelectorAll(".cells .cell")].flatMap((cell) => {
          cell.focus();
          const shown = document.querySelector(".origin .result b").textContent;
          const text = cell.value ?? "";
          const own = text === "" ? cell.textContent : text;
          const origins = document.querySelectorAll(".cell.source").length;
          const given = document.querySelector(".origin").textContent.includes("you can change")
            || cell.closest(".of-added");
          return shown === own && (given || origins) ? [] : [`${cell.ariaLabel}: ${shown} ${own} ${origins}`];
        })"""
    )
    assert wrong == []


def test_the_keyboard_reaches_every_number(play):
    page = play("sentence")
    page.focus(".of-weights .cell")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.of-weights .cell')[4]")
    assert "love, love" in page.locator(".origin").inner_text()


def test_the_whole_numbers_of_the_lesson(play):
    page = play("sentence")
    page.get_by_role("button", name="Whole numbers").click()
    assert grid(page, "x").tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]
    assert grid(page, "queries")[0].tolist() == [2, 0, 0, 1]
    assert grid(page, "dots")[0].max() == 5
    np.testing.assert_allclose(grid(page, "output"), shown_reference(page).output, atol=1e-3)


def test_no_serious_violation_with_everything_on(play):
    page = play("sentence")
    page.get_by_role("group", name="Heads").get_by_role("button", name="2", exact=True).click()
    page.get_by_label("Positions").select_option("rotary")
    page.fill(".mask-input", "causal & widow")
    page.focus(".of-weights .cell")
    assert violations(page) == []


# ---- masks -----------------------------------------------------------------------------------


def picture(page):
    """Which squares of the drawing are filled: the picture itself is read."""
    return page.evaluate(
        """() => {
          const canvas = document.querySelector(".mask-picture");
          const { queries, keys } = regard.drawn;
          const across = canvas.width / keys, down = canvas.height / queries;
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const blue = (i, j) => {
            const at = 4 * (Math.floor((i + 0.5) * down) * canvas.width + Math.floor((j + 0.5) * across));
            return data[at + 2] - data[at] > 60;
          };
          const row = (i) => Array.from({ length: keys }, (_, j) => blue(i, j));
          return Array.from({ length: queries }, (_, i) => row(i));
        }"""
    )


@pytest.mark.parametrize(
    "text", ["causal & (window(4, 0) | prefix(2))", "local_global(4)", "neighbourhood([4, 4], 1)", "~causal"]
)
def test_a_mask_is_drawn_as_it_is_typed(play, text):
    page = play("masks")
    page.fill(".mask-input", text)
    page.mouse.move(2, 2)
    mask = regard.masks.parse(text)
    page.evaluate("regard.drawn = { queries: 16, keys: 16 }")
    np.testing.assert_array_equal(picture(page), mask.dense(16).numpy())
    found = regard.plan(mask, 16)
    facts = page.locator(".facts").inner_text()
    assert f"{found.pairs} of 256" in facts
    assert repr(mask) in facts
    assert f"{100 * found.pairs / 256:.1f}%" in facts


def test_an_error_points_at_its_place_and_the_picture_stays(play):
    page = play("masks")
    page.fill(".mask-input", "causal & windw(4, 0)")
    assert "Did you mean window?" in page.locator(".mask-problem").inner_text()
    assert page.locator(".marked mark").inner_text() == "w"
    assert page.get_attribute(".mask-input", "aria-invalid") == "true"
    assert "stale" in page.get_attribute(".picture-place", "class")
    page.fill(".mask-input", "causal")
    assert page.locator(".mask-problem").inner_text() == ""
    assert "stale" not in page.get_attribute(".picture-place", "class")


def test_errors_in_chinese(play):
    page = play("masks", lang="zh")
    page.fill(".mask-input", "(causal")
    assert "此处应有 ')'，用来结束括号。实际为：文字的结尾。" in page.locator(".mask-problem").inner_text()


def test_costs_up_to_128k_are_shown(play):
    page = play("masks")
    page.fill(".mask-input", "causal")
    page.wait_for_selector(".costs:not(.stale) .cost-table")
    rows = page.locator(".cost-table tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k"]
    wanted = regard.cost(131072, mask="causal")
    times = wanted[131072, "dense"].operations / wanted[131072, "regard"].operations
    assert rows[-1].endswith(f"{times:.1f}×")
    assert page.locator(".cost-chart .name").all_text_contents() == ["all pairs", "only allowed", "regard"]
    page.fill(".mask-input", "window(4, 0)")
    page.wait_for_selector(".costs:not(.stale) .cost-table")
    found = regard.cost(131072, mask="window(4, 0)")[131072, "regard"].operations
    assert f"{found / 1e9:.0f} G" in page.locator(".cost-table tbody tr").last.inner_text()


def test_squares_are_read_out_by_pointer_and_keys(play):
    page = play("masks")
    page.focus(".mask-picture")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "Query 0 may not see key 2" in page.locator(".readout").inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "Query 2 may see key 2. In all it sees 3 of 16 keys." in page.locator(".readout").inner_text()


def test_a_mask_with_a_table_has_its_own_length(play):
    page = play("masks")
    page.fill(".mask-input", "documents([0*6, 1*4])")
    assert "10 queries × 10 keys" in page.locator(".facts").inner_text()
    assert not page.get_by_label("Tokens drawn").is_visible()
    page.wait_for_selector(".costs:not(.stale) .cost-table")
    assert page.locator(".cost-table tbody tr").count() == 1
    assert "What regard computes is not shown for a mask with a table" in page.locator(".costs").inner_text()
    page.get_by_role("button", name="Causal", exact=True).click()
    slider = page.get_by_label("Tokens drawn")
    slider.focus()
    page.keyboard.press("End")
    assert "64 queries × 64 keys" in page.locator(".facts").inner_text()


# ---- the transformer -------------------------------------------------------------------------


def test_every_block_opens_to_shapes_formula_and_numbers(play):
    page = play("transformer")
    blocks = page.locator(".diagram .block")
    assert blocks.count() == 27
    titles = set()
    for index in range(27):
        block = blocks.nth(index)
        block.focus()
        page.keyboard.press("Enter")
        assert block.get_attribute("aria-pressed") == "true"
        panel = page.locator(".panel")
        text = panel.inner_text()
        titles.add(panel.locator("h2").inner_text())
        assert "shapes" in text
        assert "parameters" in text
        assert panel.locator(".formula math").count() or "tokens" in panel.locator("h2").inner_text()
        assert panel.locator(".strips, .bars, .token-list").count()
        assert "NaN" not in text
        assert "undefined" not in text
        assert "transformer." not in text
        assert "{" not in text  # a number that nobody filled in
    assert len(titles) == 27


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_share_of_the_feed_forward_block_is_that_of_its_layer(play, stack):
    page = play("transformer")
    page.get_by_role("button", name=f"{stack.title()}: feed-forward", exact=True).click()
    layer = getattr(embedded().model, stack).layers[0]
    share = count_parameters(layer.feed_forward) / count_parameters(layer)
    assert f"{100 * share:.0f}% of the parameters" in page.locator(".panel .says").inner_text()


def test_layers_heads_and_tokens_can_be_chosen(play):
    page = play("transformer")
    page.get_by_role("button", name="Decoder: cross-attention", exact=True).click()
    page.get_by_role("group", name="Layer").get_by_role("button").last.click()
    last = page.evaluate("regard.state.numbers.sizes.decoder_layers") - 1
    page.locator(".head-button").nth(1).click()
    page.get_by_role("group", name="Queries").get_by_role("button").nth(3).click()
    state = page.evaluate("({ ...regard.state, numbers: null })")
    assert (state["block"], state["layer"], state["head"], state["token"]) == ("decoder.cross", last, 1, 3)
    weights = page.evaluate(f"regard.state.numbers.blocks.get('decoder.{last}.cross').weights[1][3]")
    shown = [float(text.lstrip("<").rstrip("%")) for text in page.locator(".bars dd span").all_inner_texts()]
    np.testing.assert_allclose(shown, 100 * np.array(weights), atol=0.51)
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"


@pytest.mark.parametrize("viewport", [{"width": 1200, "height": 1000}, PHONE])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_name_of_a_chosen_block_fits_into_it(play, lang, viewport):
    page = play("transformer", lang=lang, viewport=viewport)
    too_wide = """(blocks) => blocks.filter((block) => {
      block.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      const [frame, text] = [block.querySelector("rect"), block.querySelector("text")];
      return frame && text.getBBox().width > frame.getBBox().width - 4;
    }).map((block) => block.textContent)"""
    assert page.locator(".diagram .block").evaluate_all(too_wide) == []


@pytest.mark.parametrize(("lang", "name"), [("en", "Encoder: self-attention"), ("zh", "编码器：自注意力")])
def test_the_name_of_a_block_says_where_it_is(play, lang, name):
    assert play("transformer", lang=lang).locator(".panel h2").inner_text() == name


def test_the_blocks_are_walked_through_in_order(play):
    page = play("transformer")
    start = page.locator(".panel h2").inner_text()
    page.get_by_role("button", name="Next block").click()
    assert page.locator(".panel h2").inner_text() != start
    page.get_by_role("button", name="Previous block").click()
    assert page.locator(".panel h2").inner_text() == start


def test_the_probabilities_are_those_of_the_translator(play):
    page = play("transformer")
    page.get_by_role("button", name="Decoder: softmax: probabilities").click()
    page.get_by_role("group", name="Steps").get_by_role("button").first.click()
    translation = page.evaluate("regard.state.numbers.start.translation")
    assert page.locator(".bars dt").first.inner_text() == translation[0]
    assert translation == regard.translate(page.evaluate("regard.state.numbers.start.text"))


@pytest.mark.parametrize(
    "block", ["Encoder: self-attention", "Decoder: feed-forward", "Decoder: softmax: probabilities"]
)
def test_no_serious_violation_in_blocks(play, block):
    page = play("transformer")
    page.get_by_role("button", name=block, exact=True).click()
    assert violations(page) == []
