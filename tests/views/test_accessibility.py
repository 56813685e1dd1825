"""Nobody is kept out: axe-core finds nothing serious in any view, and every control has its own name."""

import re

import pytest

from regard.texts import read_table
from views import stage
from views.axe import RULES, violations
from views.viewing import VIEWS, open_stage

PHONE = {"width": 390, "height": 844}

# The accessible names of all controls, as browsers find them.
NAMES = """[...document.querySelectorAll("button, select, input, summary, [tabindex='0']")]
  .filter((element) => element.checkVisibility() && !element.closest("dialog"))
  .map((element) => element.getAttribute("aria-label") ?? (element.labels?.[0] ?? element).textContent)
  .map((name) => name.trim())"""


def test_the_check_would_notice(opened, tmp_path):
    file = tmp_path / "bad.html"
    file.write_text(
        '<!doctype html><html lang="en"><title>Bad</title><main><h1>Bad</h1>'
        '<p style="color: #ccc; background: #fff">too pale</p><button></button></main></html>',
        encoding="utf-8",
    )
    page = opened(file).page
    unnamed, pale = violations(page)
    assert unnamed.startswith("button-name in 1 places: <button></button>")
    assert pale.startswith("color-contrast in 1 places: <p")
    assert "too pale" in pale
    assert violations(page, "color-contrast") == [pale]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_violation(page, view, theme):
    role = page.run("regard.recording.calls.flatMap((call) => call.roles).find(Boolean)?.role ?? ''")
    page.set(view=view, theme=theme, call=4, query=3, key=2, find="a", role=role)
    assert violations(page.page, *RULES[theme]) == []


@pytest.mark.parametrize("state", [{"sort": "role"}, {"sort": "entropy"}, {"embed": True}, {"likely": "on"}])
def test_no_serious_violation_in_other_states(page, state):
    page.set(view="text" if "likely" in state else "overview", **state)
    assert violations(page.page) == []


def test_no_serious_violation_in_help_and_explanations(page):
    page.set(view="matrix", query=1, key=1)
    page.page.click(".row-table summary")
    page.page.hover(".readout .term >> nth=0")
    assert violations(page.page) == []
    page.page.click(".row-table summary")
    page.page.keyboard.press("?")
    assert violations(page.page) == []


@pytest.mark.parametrize("view", VIEWS)
def test_every_control_has_a_name_of_its_own(page, view):
    page.set(view=view, call=4, query=3)
    names = page.run(NAMES)
    assert all(names)
    twice = sorted({name for name in names if names.count(name) > 1})
    assert twice == []


@pytest.fixture(scope="module")
def _phone(browser, tmp_path_factory):
    return open_stage(browser, tmp_path_factory.mktemp("phone"), stage.long(701), screen=PHONE)


@pytest.fixture
def phone(_phone):
    _phone.reset()
    yield _phone
    _phone.opened.check()


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_the_head_and_nothing_is_cut_off(phone, view):
    phone.set(view=view, query=650, head=1)
    assert phone.run("document.documentElement.scrollWidth") <= PHONE["width"]
    # The controls are folded away, but which head this is can be seen.
    assert phone.page.locator(".now-shown").is_visible()
    assert "1" in phone.text(".now-shown")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_role_below_a_thumbnail_is_cut_off_on_a_phone(phone, language):
    phone.set(view="overview", language=language)
    names = [name for key, name in read_table("page", language).items() if re.fullmatch(r"role\.[a-z]+", key)]
    assert len(names) > 10
    cut = phone.run(
        """given.filter((name) => {
          const badge = document.createElement("span");
          Object.assign(badge, { className: "badge", textContent: name });
          const card = document.querySelector(".heads-row .card");
          card.append(badge);
          card.style.width = "46px"; // the narrowest that a card becomes
          const cut = badge.scrollWidth > badge.clientWidth;
          badge.remove();
          return cut;
        })""",
        names,
    )
    assert cut == []


@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_violation_on_a_phone(phone, view):
    phone.set(view=view, query=650, key=3, head=1, find="w65")
    assert violations(phone.page) == []
    # The controls folded out, and in the dark.
    phone.page.click(".fold")
    phone.set(theme="dark")
    assert violations(phone.page, "color-contrast") == []


def test_weights_of_lines_stay_beside_the_tokens_on_a_phone(phone):
    phone.set(view="lines", query=650, key=None, heads=[0, 1])
    room = phone.run("parseFloat(regard.app.view.right.root.style.getPropertyValue('--beside'))")
    assert room > 40
    right = phone.run("regard.app.view.right.root.getBoundingClientRect().right")
    ends = (
        "[...document.querySelectorAll('.column.key .token')].map((one) => one.getBoundingClientRect().right)"
    )
    assert all(end <= right - room + 1 for end in phone.run(ends))


def test_the_weight_of_a_step_is_not_cut_off_on_a_phone(phone):
    phone.set(view="steps", query=650)
    table, weight = phone.run(
        """[document.querySelector('.wide').getBoundingClientRect().right,
            document.querySelector('.steps-table tbody .weight').getBoundingClientRect().right]"""
    )
    assert weight <= table + 1
