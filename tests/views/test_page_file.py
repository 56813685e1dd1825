"""The file itself: what may stand in it, how it is written, what is refused."""

import base64
import hashlib
import json
import os
import re
import zlib

import pytest
import torch

import regard
from parity import tensors
from regard import masks
from regard.errors import ArgumentError, RecordingError, ShapeError
from regard.recording import Recording, ScoredCall
from regard.views.html import json_in_html
from regard.views.page import page_html, write_page
from views.decoding import Decoded, unpacked
from views.recordings import case, recorded

HOSTILE = [
    "</script><script>alert('token')</script>",
    "<img src=x onerror=alert('image')>",
    "<!--<script>",
    "]]>",
    "&lt;b&gt; &amp;",
    "\"\\'`${alert(1)}`",
    "\u2028\u2029",
    "\ud800 half a pair",
    "שלום עולם",
    "👩‍👩‍👧‍👦",
    "注意力机制",
    "{{title}}",
    "javascript:alert('link')",
]


def hostile():
    q, k, _ = tensors(1, heads=2, queries=len(HOSTILE), dtype=torch.float32)
    call = ScoredCall("<b>layers</b>.0</script>", "encoder", 0, q, k, torch.zeros(q.shape[:3]), scale=0.5)
    seen = Recording("Model</script><script>alert('model')</script>", [call])
    seen.tokens = HOSTILE
    return seen


def letters(text):
    """The letters of a text as JavaScript counts them."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return [low + 256 * high for low, high in zip(raw[::2], raw[1::2])]


def test_a_hostile_text_does_not_run_and_survives(opened, tmp_path):
    title = "</title><script>alert('title')</script> \ud83d 猫"
    path = regard.page(hostile(), tmp_path / "x.html", title=title)
    page = opened(path).read()
    # Strings with half a pair cannot cross to Python; their letters can.
    codes = page.ask(
        "opened.calls[0].queryTokens.map((t) => Array.from({length: t.length}, (_, i) => t.charCodeAt(i)))"
    )
    assert codes == [letters(token) for token in HOSTILE]
    assert page.ask("opened.model") == "Model</script><script>alert('model')</script>"
    assert page.ask("opened.calls[0].name") == "<b>layers</b>.0</script>"
    assert page.ask("document.querySelectorAll('img').length") == 0
    assert page.ask("[...document.querySelectorAll('b')].every((b) => b.textContent === 'regard')")
    assert page.ask("document.title").startswith("</title><script>alert('title')</script>")


def test_the_browser_runs_no_script_but_the_page_s(opened, tmp_path):
    text = page_html.document(write_page.payload_for(case()[0], write_page.PageOptions()))
    broken = tmp_path / "x.html"
    # As if something had slipped through: the policy of the page stops it.
    broken.write_text(text.replace("</body>", "<script>window.ran = true</script></body>"), encoding="utf-8")
    page = opened(broken, bypass_csp=False)
    assert page.ask("window.ran") is None
    assert page.problems
    assert all("Content Security Policy" in problem for problem in page.problems)
    page.problems.clear()


def test_the_policy_knows_two_scripts_and_no_other_source(tmp_path):
    text = regard.page(case()[0], tmp_path / "x.html").read_text(encoding="utf-8")
    (rules,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', text)
    (sources,) = [rule.split()[1:] for rule in rules.split(";") if rule.split()[0] == "script-src"]
    (first,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    scripts = [first, unpacked(text, "program")]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert sources == [f"'sha256-{digest}'" for digest in digests]


def test_another_program_in_the_place_of_the_page_s_does_not_run(opened, tmp_path):
    path = regard.page(case()[0], tmp_path / "x.html")
    text = path.read_text(encoding="utf-8")
    other = base64.b64encode(zlib.compress(b"window.ran = true;")).decode()
    own = re.search('data-regard="program">([^<]*)<', text)[1]
    path.write_text(text.replace(own, other), encoding="utf-8")
    page = opened(path, bypass_csp=False)
    if not page.problems:
        page.page.wait_for_event("console")
    assert page.ask("window.ran") is None
    assert page.problems
    assert all("Content Security Policy" in problem for problem in page.problems)
    page.problems.clear()


def test_a_page_saved_from_the_browser_opens_again(opened, tmp_path):
    page = opened(regard.page(case()[0], tmp_path / "x.html", view="matrix"), bypass_csp=False)
    page.page.wait_for_selector(".view.matrix")
    saved = tmp_path / "saved.html"
    saved.write_text(page.page.content(), encoding="utf-8")
    again = opened(saved, bypass_csp=False)
    again.page.wait_for_selector(".view.matrix")
    # One program that listens, not two: a second would turn the help off again.
    again.page.keyboard.press("?")
    assert again.ask("window.regard.app.help.isOpen") is True
    assert again.ask("document.querySelectorAll('.view.matrix').length") == 1


def test_the_program_has_a_name_where_errors_are_told(opened, tmp_path):
    page = opened(regard.page(case()[0], tmp_path / "x.html"))
    page.page.wait_for_selector(".view")
    where = page.ask(
        "(() => { try { window.regard.app.lookAt(99).call; } catch (error) { return error.stack; } })()"
    )
    assert "regard.js:" in where


def test_the_page_opens_under_its_own_policy(opened, tmp_path):
    page = opened(regard.page(case()[0], tmp_path / "x.html", title="Cats"), bypass_csp=False)
    page.page.wait_for_selector(".view")
    assert page.ask("document.title") == "Cats · regard"


def test_nothing_in_the_file_points_outside(tmp_path):
    text = regard.page(case()[0], tmp_path / "x.html").read_text(encoding="utf-8")
    text += unpacked(text, "program") + unpacked(text, "style")
    names = re.findall(r"""(?:src|href)=["']([^"']+)""", text)
    assert all(name.startswith(("data:", "#", "blob:")) for name in names), names
    outside = {
        address for address in re.findall(r"https?://[^\s\"'`)]+", text) if "www.w3.org" not in address
    }
    assert not outside  # the names of SVG and XHTML are addresses that nobody asks
    assert "@import" not in text


def test_json_in_a_script():
    value = {"a": "</script>\u2028&\ud800", "b": [1.5, None, "猫"]}
    text = json_in_html(value)
    assert not re.search("[<>&\u2028]", text)
    text.encode("utf-8")
    assert json.loads(text) == value


# ---- writing -------------------------------------------------------------------------------------


def test_what_it_opens_first(tmp_path):
    q, k, _ = tensors(1, heads=3, dtype=torch.float32)
    calls = [
        ScoredCall(f"l.{i}", "encoder", i, q, k, torch.zeros(q.shape[:3]), numbers=(1, 4, 6)) for i in (2, 5)
    ]
    seen = Recording("Toy", calls)
    page = Decoded(
        regard.page(seen, tmp_path / "x.html", view="matrix", layer=5, head=4, lang="zh", title="T")
    )
    assert page.header["start"] == {"view": "matrix", "call": 1, "head": 1}
    assert (page.header["language"], page.header["title"], page.header["model"]) == ("zh", "T", "Toy")
    page = Decoded(regard.page(seen, tmp_path / "x.html", view="lines", head=6))
    assert page.header["start"] == {"view": "lines", "head": 2, "heads": [2]}
    page = Decoded(regard.page(seen, tmp_path / "x.html", layers=5))
    assert [call["layer"] for call in page.header["calls"]] == [5]
    assert page.header["start"] == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"view": "map"},
            r"view must be one of those on the page \(text, overview, lines.*\). Got view = 'map'",
        ),
        ({"layer": 7}, r"layer must be one of those on the page \(0\). Got layer = 7"),
        ({"head": 6}, r"head must be one of those on the page \(0, 1, 2, 3, 4, 5\). Got head = 6"),
        ({"lang": "fr"}, r"lang must be one of en, zh. Got lang = 'fr'"),
    ],
)
def test_options_that_do_not_fit(tmp_path, options, message):
    with pytest.raises(ArgumentError, match=message):
        regard.page(case()[0], tmp_path / "x.html", **options)


def test_layers_that_were_not_recorded(tmp_path):
    with pytest.raises(
        RecordingError, match=r"layers must be among those recorded \(0\). Got layers = \[3, 9\]. Choose some"
    ):
        regard.page(case()[0], tmp_path / "x.html", layers=[0, 3, 9])
    with pytest.raises(RecordingError, match=r"\(there are none\). Got no calls. Run the model inside"):
        regard.page(Recording("Empty"), tmp_path / "x.html")


def test_words_of_the_user(tmp_path):
    seen, _ = case()
    seen.tokens = list("abcdefghijklm")
    page = Decoded(regard.page(seen, tmp_path / "x.html", words=[0] * 5 + list(range(1, 9))))
    assert page.header["texts"][0]["words"] == [0] * 5 + list(range(1, 9))
    with pytest.raises(ShapeError, match=r"Got 3 numbers"):
        regard.page(seen, tmp_path / "x.html", words=[0, 0, 1])


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = regard.page(case()[0], tmp_path / "x.html")
    before = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        regard.page(case(mask=masks.causal())[0], path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.html"]


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_name_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(regard.page(case()[0])) == "attention.html"
    assert (tmp_path / "attention.html").exists()


# ---- size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [False, True])
def test_the_size_is_known_before(tmp_path, values):
    q, k, v = tensors(2, heads=4, queries=211, channels=32, dtype=torch.float32)
    seen = recorded(q, k, v if values else None)
    said = regard.estimate_page(seen)
    size = regard.page(seen, tmp_path / "x.html").stat().st_size
    assert 0.85 < said.nbytes / size < 1.15
    assert str(said).startswith("1 call, about 0.")


@pytest.mark.parametrize(
    ("tokens", "values", "most"), [(13, True, 0.4e6), (508, False, 6.4e6), (508, True, 8.0e6)]
)
def test_every_head_of_minilm_in_a_few_megabytes(tmp_path, tokens, values, most):
    # Noise compresses worse than what a trained model computes.
    made = [tensors(1, heads=12, queries=tokens, channels=32, dtype=torch.float32, seed=i) for i in range(6)]
    calls = [
        ScoredCall(f"l.{i}", "encoder", i, q, k, torch.zeros(q.shape[:3]), v=v if values else None)
        for i, (q, k, v) in enumerate(made)
    ]
    seen = Recording("MiniLM", calls)
    size = regard.page(seen, tmp_path / "x.html").stat().st_size
    assert size <= most
    assert 0.85 < regard.estimate_page(seen).nbytes / size < 1.15


def test_very_large_pages_are_written_only_if_one_insists(tmp_path, monkeypatch):
    monkeypatch.setattr(write_page, "LARGEST", 1_000)
    with pytest.raises(
        RecordingError, match=r"at most 0 MB.*Got 1 call, about .* Choose fewer layers with layers="
    ):
        regard.page(case()[0], tmp_path / "x.html")
    assert regard.page(case()[0], tmp_path / "x.html", force=True).exists()
