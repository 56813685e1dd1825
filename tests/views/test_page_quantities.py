"""Gradients, products and contributions read off the page in Chromium, against the identities in NumPy."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import regard
from regard.errors import ArgumentError, RecordingError, ShapeError
from regard.heads.value_norms import value_weighted
from regard.recording import Recording
from regard.recording.output_projection import find_projection
from regard.views.page.page_layer import PROJECTED, RESIDUALS, carried_layers
from regard.views.page.page_payload import payload_of
from views import stage
from views.axe import RULES, violations
from views.decoding import Decoded
from views.recordings import CASES, case
from views.viewing import SVG, Page, open_stage

WIDTH = 19


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def with_gradients(seen, *, size=1.0):
    """The recording with a gradient and an output projection in each of its calls."""
    calls = []
    for place, call in enumerate(seen.calls):
        channels = call.v.shape[-1]
        gradient = size * normal(*call.q.shape[:3], channels, seed=place)
        projection = normal(call.heads, channels, WIDTH, seed=100 + place)
        calls.append(replace(call, output_gradient=gradient, projection=projection))
    found = Recording(seen.model, calls)
    found.tokens, found.source_tokens = seen.tokens, seen.source_tokens
    return found


def wanted(call, weights, batch, direction=None):
    """What each quantity must be, in float64, from exact weights ``(head, query, key)``."""
    group = call.heads // call.v.shape[1]
    v = np.repeat(call.v[batch].double().numpy(), group, axis=0)
    gradient = call.output_gradient[batch].double().numpy() @ v.swapaxes(1, 2)
    moved = np.einsum("hkc,hcw->hkw", v, call.projection.double().numpy())
    given = np.linalg.norm(moved, axis=-1) if direction is None else moved @ direction.double().numpy()
    return {
        "gradient": gradient,
        "product": weights * gradient,
        "contribution": weights * given[:, None],
    }


def values_of(page, what, call=0):
    """A quantity of all pairs, ``(head, query, key)``, as the page computes it."""
    found = page.ask(
        f"""(() => {{ const call = opened.calls[{call}];
        const all = (head) => Array.from(call.values("{what}", head, 0, call.queries, 0, call.keys), String);
        return [call.heads.map((_, head) => all(head)), call.queries, call.keys]; }})()"""
    )
    heads, queries, keys = found
    return np.array(heads, float).reshape(-1, queries, keys)


@pytest.mark.parametrize(
    "name",
    [
        *("plain", "grouped", "causal behind a cache", "padded queries", "a mask per head", "nothing"),
        *("softcap and bias", "sinks", "very large scores", "bfloat16", "float64"),
    ],
)
def test_every_number_is_within_the_error_that_the_page_shows(opened, tmp_path, name):
    plain, weights = CASES[name]()
    seen = with_gradients(plain)
    direction = normal(WIDTH, seed=7) if name in ("grouped", "plain") else None
    page = opened(regard.page(seen, tmp_path / "x.html", batch=1, direction=direction)).read()
    heads, queries, keys = weights.shape[1:]
    allowed = np.zeros((heads, queries, keys), bool)
    pairs = "call.heads.map((_, head) => call.queryWords.map((_, query) => call.allowed(head, query)))"
    for head, rows in enumerate(page.ask(f"((call) => {pairs})(opened.calls[0])")):
        for query, intervals in enumerate(rows):
            for start, stop in intervals:
                allowed[head, query, start:stop] = True
    for what, exact in wanted(seen[0], weights[1], 1, direction).items():
        found = values_of(page, what)
        masked = np.isnan(found)
        assert (masked == ~allowed).all()
        error = page.ask(f'opened.calls[0].errorOf("{what}")')
        worst = np.abs(np.where(masked, 0, found - exact)).max(initial=0)
        # Python measures at masked pairs too, where gradients exist.
        assert worst <= error + 1e-6 * max(1, np.abs(exact).max())
        greatest = np.abs(np.where(masked, 0, exact)).max((1, 2))
        np.testing.assert_allclose(
            page.ask(f'opened.calls[0].heads.map((_, head) => opened.calls[0].greatest("{what}", head))'),
            greatest,
            rtol=1e-3,
            atol=1e-6,
        )
        if what == "gradient":
            assert error <= 1e-3 * np.abs(exact).max()
            everywhere = page.ask("Array.from(opened.calls[0].gradients(1, 0, 2, 0, 3))")
            np.testing.assert_allclose(everywhere, exact[1, :2, :3].ravel(), atol=error + 1e-6)


def test_the_comparison_would_notice(opened, tmp_path):
    plain, weights = case()
    seen = with_gradients(plain)
    page = opened(regard.page(seen, tmp_path / "x.html")).read()
    exact = wanted(seen[0], weights[0], 0)["gradient"]
    found, error = values_of(page, "gradient"), page.ask('opened.calls[0].errorOf("gradient")')
    assert np.abs(found - exact).max() <= error + 1e-6
    assert np.abs(found - np.roll(exact, 1, axis=2)).max() > 100 * error


def test_it_is_what_the_recording_of_a_model_says(opened, tmp_path):
    torch.manual_seed(0)
    model = regard.nn.LanguageModel(50, width=24, heads=4, layers=2).eval()
    ids = torch.randint(1, 50, (1, 11))
    with regard.watch(model, gradients=True, projections=True) as seen:
        model(ids)[0, -1, 7].backward()
    direction = normal(24)
    page = opened(regard.page(seen, tmp_path / "x.html", direction=direction)).read()
    for place, call in enumerate(seen.calls):
        for head in range(call.heads):
            exact = {
                "gradient": call.gradient(head),
                "product": call.weights_times_gradient(head),
                "contribution": call.contribution(head, direction=direction),
            }
            for what, numbers in exact.items():
                found = values_of(page, what, place)[head]
                error = page.ask(f'opened.calls[{place}].errorOf("{what}")')
                mask = np.tril(np.ones((11, 11), bool))
                assert (np.isnan(found) == ~mask).all()
                np.testing.assert_allclose(found[mask], numbers.numpy()[mask], atol=error + 1e-5)
    # The relevance that the text is shaded by, for the row that the logit was read at.
    (kept,) = page.ask("opened.relevance.map(({ row, own }) => [row, Array.from(own)])")
    assert kept[0] == 10
    np.testing.assert_allclose(kept[1], regard.relevance(seen, row=-1).own.numpy(), rtol=1e-5)
    # One number per head: that of regard.heads.importance.
    names = page.ask("opened.statistics")
    assert names[:2] == ["importance", "contribution"]
    for place, call in enumerate(seen.calls):
        own = [row["importance"] for row in regard.heads.importance(seen) if row["layer"] == call.layer]
        np.testing.assert_allclose(
            page.ask(f'Array.from(opened.calls[{place}].statistic("importance"))'), own, rtol=1e-4
        )
        given = [call.contribution(head, direction=direction).sum() / 11 for head in range(4)]
        np.testing.assert_allclose(
            page.ask(f'Array.from(opened.calls[{place}].statistic("contribution"))'),
            given,
            rtol=1e-3,
            atol=1e-5,
        )


def test_contributions_without_a_direction_are_sizes(opened, tmp_path):
    seen = with_gradients(stage.everything().recording)
    page = opened(regard.page(seen, tmp_path / "x.html")).read()
    found = values_of(page, "contribution", call=1)
    error = page.ask('opened.calls[1].errorOf("contribution")')
    for head in range(seen[1].heads):
        sizes = value_weighted(seen[1]).weights(head).numpy()
        np.testing.assert_allclose(found[head], sizes, atol=error + 1e-5)
    assert page.ask("opened.directed") is False


def test_vectors_that_cancel_get_more_bits():
    plain, _ = case()
    call = plain[0]
    # Every value is nearly at a right angle to every gradient, so that 16 bits would leave noise.
    v, gradient = torch.zeros_like(call.v), torch.zeros(*call.q.shape[:3], call.v.shape[-1])
    v[..., 0], v[..., 1] = 1000.0, 1e-3 * normal(*v.shape[:3])
    gradient[..., 1] = 1.0
    gradient[..., 0] = 1e-9 * normal(*gradient.shape[:3], seed=2)
    seen = Recording("Toy", [replace(call, v=v, output_gradient=gradient)])
    (described,) = payload_of(seen, seen.calls).header["calls"]
    exact = (gradient.double() @ v.double().mT).abs().max()
    assert described["quantities"]["gradient"]["error"] <= 1e-3 * float(exact)


def test_thumbnails_are_what_is_furthest_from_zero(opened, tmp_path):
    plain, weights = CASES["causal"]()
    seen = with_gradients(plain)
    page = opened(regard.page(seen, tmp_path / "x.html")).read()
    exact = wanted(seen[0], weights[0], 0)["product"]
    for head in (0, 4):
        tones = np.array(page.ask(f'Array.from(opened.calls[0].thumbnail({head}, "product").values)'))
        tones = tones.reshape(13, 13)
        assert (tones == -128).tolist() == (~np.tril(np.ones((13, 13), bool))).tolist()
        shares = np.sign(tones) * 10.0 ** (5 * (np.abs(tones) / 127 - 1)) * (tones != 0)
        own = np.tril(exact[head])
        found = np.where(tones == -128, 0, shares) * np.abs(own).max()
        np.testing.assert_allclose(found, own, rtol=0.06, atol=2e-5 * np.abs(own).max())


def test_recordings_without_gradients_have_weights_alone(tmp_path):
    plain, _ = case()
    header = payload_of(plain, plain.calls).header
    assert header["what"] == ["weight"]
    assert header["relevance"] == []
    assert "importance" not in header["statistics"]
    assert not {"outputGradient", "given", "quantities"} & header["calls"][0].keys()
    only = Recording("Toy", [replace(with_gradients(plain)[0], output_gradient=None)])
    assert payload_of(only, only.calls).header["what"] == ["weight", "contribution"]
    both = Recording("Toy", [with_gradients(plain)[0], plain[0]])
    assert payload_of(both, both.calls).header["what"] == ["weight"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"what": "gradient"}, ArgumentError, "watch\\(model, gradients=True\\)"),
        ({"what": "contribution"}, ArgumentError, "watch\\(model, projections=True\\)"),
        ({"what": "meaning"}, ArgumentError, "Choose one of them"),
        ({"direction": torch.ones(3)}, ArgumentError, "projections=True"),
        ({"relevance": 2}, RecordingError, "no backward pass was recorded"),
        ({"relevance": "all"}, ArgumentError, "relevance must be a row or several"),
        ({"relevance": []}, ArgumentError, "relevance must be a row or several"),
    ],
)
def test_what_was_not_recorded_is_refused(tmp_path, options, error, said):
    plain, _ = case()
    with pytest.raises(error, match=said):
        regard.page(plain, tmp_path / "x.html", **options)


def test_bad_rows_and_directions_are_refused(tmp_path):
    seen = with_gradients(case()[0])
    with pytest.raises(ShapeError, match="direction must be a tensor as wide"):
        regard.page(seen, tmp_path / "x.html", direction=torch.ones(3))
    with pytest.raises(ArgumentError, match="row must be a position"):
        regard.page(seen, tmp_path / "x.html", relevance=99)


@pytest.mark.parametrize("name", ["output_gradient", "projection"])
def test_numbers_that_are_not_finite_are_refused(tmp_path, name):
    (call,) = with_gradients(case()[0]).calls
    tensor = getattr(call, name).clone()
    tensor.view(-1)[0] = torch.nan
    with pytest.raises(RecordingError, match=f"finite numbers, but {name} of"):
        regard.page(Recording("Toy", [replace(call, **{name: tensor})]), tmp_path / "x.html")
    huge = replace(call, v=1e30 * call.v, output_gradient=1e30 * call.output_gradient)
    with pytest.raises(RecordingError, match="finite numbers, but gradient of"):
        regard.page(Recording("Toy", [huge]), tmp_path / "x.html")


# ---- the views -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def _colourful(browser, tmp_path_factory):
    shown = stage.everything()
    shown = stage.Stage(with_gradients(shown.recording), shown.traces)
    return open_stage(browser, tmp_path_factory.mktemp("gradients"), shown, direction=normal(WIDTH, seed=7))


@pytest.fixture
def colourful(_colourful):
    """A page of three kinds of attention with gradients, and contributions along a direction."""
    _colourful.reset()
    yield _colourful
    _colourful.opened.check()


def exact(page, call, head, what):
    one = page.shown.recording[call]
    return wanted(one, page.shown.traces[call]["weights"][0], 0, normal(WIDTH, seed=7))[what][head]


@pytest.mark.parametrize("what", ["gradient", "product", "contribution"])
def test_the_matrix_shows_what_was_chosen(colourful, what):
    colourful.set(view="matrix", call=0, head=2)
    colourful.page.select_option('select[data-control="what"]', what)
    numbers = exact(colourful, 0, 2, what)
    colourful.point(3, 5)
    row, column, value = colourful.readout()
    assert (row, column) == (3, 5)
    assert value == pytest.approx(numbers[3, 5], abs=5e-3)
    assert colourful.run("regard.state.now.what") == what
    assert "within" in colourful.text(".facts")
    # The colour of a cell is on the side of its sign.
    sign = colourful.run(
        "(() => { const { shading } = regard.app.view; return given.map((v) => shading.place(v) - 0.5); })()",
        [float(numbers.min()), float(numbers.max())],
    )
    assert sign[0] < 0 < sign[1]
    label = colourful.page.locator("canvas.map").get_attribute("aria-label")
    assert label.startswith(
        {"gradient": "Gradient", "product": "Weight ×", "contribution": "Contribution"}[what]
    )


def test_masked_pairs_are_masked_in_every_quantity(colourful):
    colourful.set(view="matrix", call=3, head=1, what="gradient")
    colourful.point(1, 5)
    assert "masked" in colourful.text(".readout")


def test_through_the_lens_products_add_up_and_gradients_are_averaged(colourful):
    colourful.set(view="matrix", call=0, head=1, what="product", words="merge")
    numbers = exact(colourful, 0, 1, "product")
    pieces = [[0], [1, 2, 3], [4], [5], [6], [7], [8, 9], [10]]

    def seen(way):
        return np.array([[way(numbers[np.ix_(i, j)]) for j in pieces] for i in pieces])

    block = "Array.from(regard.app.look().values(1, 0, 8, 0, 8))"
    found = np.array(colourful.run(block)).reshape(8, 8)
    assert np.allclose(found, seen(lambda part: part.sum(1).mean()), atol=5e-3)
    colourful.set(what="gradient", sinks="special")
    numbers = exact(colourful, 0, 1, "gradient")
    pieces = pieces[1:-1]
    found = np.array(colourful.run("Array.from(regard.app.look().values(1, 1, 7, 0, 6))")).reshape(6, 6)
    assert np.allclose(found, seen(np.mean), atol=5e-3)  # nothing is divided by what is left


def test_the_overview_paints_both_signs_on_one_scale(colourful):
    colourful.set(view="overview", what="gradient")
    assert (
        colourful.page.locator(".overview .legend")
        .get_attribute("aria-label")
        .startswith("Gradient: from ≤ −")
    )
    hues = colourful.run(
        """(() => { const { canvas } = regard.app.view.cards[0];
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let [blue, orange] = [0, 0];
        for (let at = 0; at < data.length; at += 4) {
          if (data[at + 2] > data[at] + 30) blue += 1;
          if (data[at] > data[at + 2] + 30) orange += 1;
        }
        return [blue, orange, canvas.width, canvas.height]; })()"""
    )
    numbers = exact(colourful, 0, 0, "gradient")
    assert hues[2:] == [11, 11]
    # Cells near 0 are nearly grey.
    assert 0.3 * (numbers > 0).sum() < hues[0] <= (numbers > 0).sum()
    assert 0.3 * (numbers < 0).sum() < hues[1] <= (numbers < 0).sum()


def test_lines_have_the_colour_of_their_sign(colourful):
    colourful.set(view="lines", call=0, heads=[2], query=3, what="product")
    numbers = exact(colourful, 0, 2, "product")[3]
    lines = colourful.run("regard.lines()")
    assert lines
    for line in lines:
        assert line["weight"] == pytest.approx(numbers[line["column"]], abs=5e-3)
    svg = colourful.run("regard.exportSvg()")
    inks = colourful.run("[regard.app.inks.positive, regard.app.inks.negative]")
    assert all(ink in svg for ink in inks)


def test_the_text_says_and_shades_what_was_chosen(colourful):
    colourful.set(view="text", call=0, head=1, what="product", query=5, quiet="off")
    numbers = exact(colourful, 0, 1, "product")[5]
    said = float(colourful.page.locator(".text-caption").get_attribute("data-weight"))
    assert said == pytest.approx(numbers[np.abs(numbers).argmax()], abs=5e-3)
    assert "Weight × gradient" in colourful.text(".text-caption")
    assert "%" not in colourful.text(".text-caption")
    tones = np.array(colourful.run("Array.from(regard.app.view.blocks.key.tones)"))
    strong = np.abs(numbers) > 0.1 * np.abs(numbers).max()
    assert (np.sign(tones[strong]) == np.sign(numbers[strong])).all()
    # The colours are relative to the strongest of the row, and the bar says so.
    greatest = colourful.run("regard.app.view.now.shading.greatest")
    assert greatest == pytest.approx(np.abs(numbers).max(), abs=5e-3)
    bar = colourful.page.locator(".text-bar .legend")
    assert bar.get_attribute("aria-label").startswith("Weight × gradient: from −")
    colourful.set(what="weight")
    assert bar.count() == 0


def test_the_text_is_shaded_by_relevance(browser, tmp_path):
    torch.manual_seed(1)
    model = regard.nn.LanguageModel(50, width=24, heads=4, layers=2).eval()
    ids = torch.randint(1, 50, (1, 9))
    with regard.watch(model, gradients=True) as seen:
        model(ids)[0, 6, 7].backward()
    seen.tokens = [f"w{i}" for i in range(9)]
    path = regard.page(seen, tmp_path / "x.html", relevance=6)
    page = Page(stage_opened(browser, path), None)
    assert page.now("group") == "relevance"
    assert page.text(".text-caption") == "Relevance for w6"
    found = regard.relevance(seen, row=6).own.numpy()
    page.set(quiet="off")
    shown = np.array(page.run("Array.from(regard.app.view.now.shown)"))
    assert shown[6] == 0
    np.testing.assert_allclose(np.delete(shown, 6), np.delete(found, 6), rtol=1e-5, atol=1e-7)
    assert page.page.locator('[data-control="what"]').count() == 0  # relevance has no other quantity
    page.set(group="head")
    assert page.page.locator('[data-control="what"]').count() > 0
    assert "head" in page.text(".text-caption")
    page.opened.check()


def stage_opened(browser, path):
    from views.browser import Opened

    return Opened(browser.new_context(viewport={"width": 1100, "height": 760}).new_page(), path)


def test_steps_go_on_to_what_the_layer_adds(colourful):
    colourful.set(view="steps", call=0, head=3, query=4)
    call = colourful.shown.recording[0].scored()
    heads = call.output()[0, :, 4].double()  # (head, channel)
    wanted = torch.einsum("hc,hcw->w", heads, call.projections.double()).numpy()
    shown = colourful.page.locator("[data-sum]").get_attribute("data-sum")
    found = np.array(shown.split(), dtype=float)
    assert np.abs(found - wanted).max() < 5e-3 * np.abs(wanted).max()
    headings = [colourful.text(f".steps-body .chapter:nth-of-type({place}) h2") for place in (4, 5)]
    assert "All heads, side by side" in headings[0]
    assert "Through W_O" in headings[1]


def test_a_page_without_all_projections_ends_with_the_head(tmp_path):
    model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    for options, carried in (({"projections": True}, True), ({"values": True}, False)):
        with torch.no_grad(), regard.watch(model, **options) as seen:
            model(torch.randn(1, 5, 16))
        assert carried_layers(seen.calls).projections == carried
        regard.page(seen, tmp_path / "x.html")
        assert ("projection" in Decoded(tmp_path / "x.html").header["calls"][0]) == carried
    assert not carried_layers([*seen.calls, *seen.calls]).projections
    assert PROJECTED >= 6 * 384 * 384  # MiniLM


@pytest.mark.parametrize("heads", [[1, 2], [0, 1]])
def test_a_page_of_some_heads_ends_with_the_head(heads):
    model = torch.nn.TransformerEncoderLayer(24, 4, batch_first=True).eval()
    with torch.no_grad(), regard.watch(model, projections=True, heads=heads) as seen:
        model(torch.randn(1, 5, 24))
    assert not carried_layers(seen.calls).projections


def outlying(model):
    """The model with one very large channel in its residual stream, as many have it."""
    with torch.no_grad():
        for weight in model.embedding.parameters():
            weight[:, 3] += 5000.0
    return model


@pytest.mark.parametrize("change", [lambda model: model, outlying])
def test_steps_end_with_the_residual(tmp_path, opened, change):
    model = change(regard.nn.LanguageModel(50, width=24, heads=4, layers=2)).eval()
    torch.nn.init.normal_(find_projection(model, "decoder.layers.1.attention").bias)
    with torch.no_grad(), regard.watch(model, projections=True) as seen:
        model(torch.tensor([[3, 1, 4, 1, 5, 9]]))
    call = seen[1]
    page = opened(regard.page(seen, tmp_path / "x.html", view="steps", layer=1))
    for fact, wanted in (
        ("added", call.projected(None, 5)[:, 0].sum(0) + call.projection_bias),
        ("before", call.residual[0, 5]),
        ("after", call.layer_output(5)[0]),
    ):
        shown = page.page.locator(f"[data-{fact}]").get_attribute(f"data-{fact}")
        found = np.array(shown.split(), dtype=float)
        assert np.abs(found - wanted.double().numpy()).max() < 2e-3 * float(wanted.abs().mean()), fact
    headings = page.page.locator(".steps-body .chapter h2").all_inner_texts()
    assert "Added to what came into the layer" in headings[-1]
    assert "y = Σ o · W_O + b" in headings[-2]


def test_the_picture_of_the_steps_goes_on_to_the_residual_too(tmp_path, opened):
    model = regard.nn.LanguageModel(50, width=24, heads=4, layers=2).eval()
    with torch.no_grad(), regard.watch(model, projections=True) as seen:
        model(torch.tensor([[3, 1, 4, 1, 5, 9]]))
    page = Page(opened(regard.page(seen, tmp_path / "x.html", view="steps", layer=1)), None)
    root = ElementTree.fromstring(page.run("regard.exportSvg()").encode())
    words = {"".join(one.itertext()) for one in root.iter(f"{SVG}text")}
    titles = {"All heads, side by side   o0 … o3", "Added to what came into the layer   x + y"}
    assert titles | {"head 0", "all heads", "with the bias b", "before", "after"} <= words
    inks = page.run("[regard.app.inks.positive, regard.app.inks.negative]")
    bars = [one for one in root.iter(f"{SVG}rect") if one.get("fill") in inks]
    assert len(bars) == 6 + 6 + 24 * 6  # q, o, all heads, and five lines
    bottom = max(float(one.get("y")) + float(one.get("height")) for one in bars)
    assert bottom < float(root.get("height")) - 10
    # The bars are those of the view: the last line is what leaves the layer.
    after = seen[1].layer_output(5)[0].double().numpy()
    last = [
        float(one.get("height")) * (1 if one.get("fill") == inks[0] else -1)
        for one in sorted(bars, key=lambda one: float(one.get("y")) + float(one.get("height")))[-24:]
    ]
    assert abs(max(map(abs, last)) - 23) < 0.1
    assert sum(value > 0 for value in last) == sum(after > 0)


def test_steps_say_why_there_is_no_residual(tmp_path, opened, monkeypatch):
    model = regard.nn.LanguageModel(50, width=24, heads=4, layers=2).eval()
    with torch.no_grad(), regard.watch(model, projections=True) as seen:
        model(torch.tensor([[3, 1, 4, 1, 5, 9]]))
    unknown = Recording("model", [replace(call, residual=None) for call in seen])
    page = opened(regard.page(unknown, tmp_path / "x.html", view="steps"))
    assert "saw no sum of a vector and y" in page.page.locator(".steps-body").inner_text()
    monkeypatch.setattr("regard.views.page.page_layer.RESIDUALS", 2 * 6 * 24 - 1)
    page = opened(regard.page(seen, tmp_path / "y.html", view="steps"))
    assert "too large for a page" in page.page.locator(".steps-body").inner_text()
    assert RESIDUALS >= 6 * 508 * 384  # MiniLM


def test_sinks_belong_to_no_sequence(tmp_path):
    """There are fewer heads than sequences here."""
    seen, _ = CASES["sinks"]()
    call = seen[0]
    few = replace(call.select(heads=[0]), numbers=None)
    wide = {name: torch.cat([getattr(few, name)] * 3) for name in ("q", "k", "lse", "v")}
    many = Recording("model", [replace(few, mask=call.mask.select((0, 0)), **wide)])
    assert regard.page(many, tmp_path / "x.html", batch=2).stat().st_size > 10_000


def test_steps_list_every_quantity_and_order_keys_by_the_chosen_one(colourful):
    colourful.set(view="steps", call=0, head=3, query=4, what="gradient")
    numbers = {what: exact(colourful, 0, 3, what)[4] for what in ("gradient", "product", "contribution")}
    rows = colourful.page.locator("tr[data-key]")
    order = [int(rows.nth(at).get_attribute("data-key")) for at in range(3)]
    assert order == np.argsort(-np.abs(numbers["gradient"]))[:3].tolist()
    for what, own in numbers.items():
        cell = rows.first.locator(f'td[data-quantity="{what}"]')
        assert float(cell.get_attribute("data-value")) == pytest.approx(own[order[0]], abs=5e-3)
    assert "hiding and merging" not in colourful.text(".steps-body")
    assert "Weight × gradient" in colourful.text(".steps-table thead")


def test_heads_say_which_column_is_about_the_quantity(colourful):
    colourful.set(view="heads", what="product")
    assert "“Importance” is its number" in colourful.text(".heads .scroll > .hint:last-child")
    assert colourful.page.locator("td.chosen").first.get_attribute("data-name") == "importance"
    colourful.set(what="weight")
    assert colourful.page.locator("td.chosen").count() == 0


def test_the_address_and_the_keyboard_choose_it(colourful):
    colourful.page.keyboard.press("w")
    assert colourful.now("what") == "gradient"
    colourful.wait("location.hash.includes('what=gradient')")
    colourful.run("location.hash = '#view=matrix&what=contribution'")
    colourful.wait("regard.state.now.what === 'contribution'")
    colourful.run("location.hash = '#view=lines&what=nothing'")
    colourful.wait("regard.state.now.view === 'lines'")
    assert colourful.now("what") == "contribution"  # what does not fit changes nothing
    colourful.run("location.hash = '#embed&view=matrix&what=product'")
    colourful.wait("regard.state.now.embed && regard.state.now.what === 'product'")
    assert not colourful.page.locator(".controls").is_visible()
    colourful.page.keyboard.press("?")
    assert "Weight × gradient" in colourful.text(".help")


def test_pages_without_gradients_have_no_such_control(page):
    assert page.page.locator('[data-control="what"]').count() == 0
    page.page.keyboard.press("w")
    assert page.now("what") == "weight"
    page.page.keyboard.press("?")
    assert "gradient" not in page.text(".help").lower()


def test_both_languages_name_and_explain_it(colourful):
    colourful.set(view="matrix", what="product", language="zh")
    control = colourful.page.locator(".field.what")
    assert "权重 × 梯度" in control.inner_text()
    control.locator(".term").hover()
    assert "一阶近似" in colourful.text(".explanation")
    assert "误差不超过" in colourful.text(".facts")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", ["text", "overview", "lines", "matrix", "heads", "steps"])
def test_nobody_is_kept_out(colourful, view, theme):
    colourful.set(view=view, theme=theme, what="product", call=0, head=1, query=5, quiet="off")
    assert violations(colourful.page, *RULES[theme]) == []
