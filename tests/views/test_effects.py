"""Effects as figures and in the terminal, in both languages, and what is refused."""

import inspect
import io
import re

import numpy as np
import pytest
import torch

import regard
from regard import figures, metrics
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.views.terminal_effects import show_effects
from regard.views.terminal_weights import SafeConsole


@pytest.fixture(scope="module")
def decoder():
    torch.manual_seed(0)
    return regard.nn.LanguageModel(50, width=16, heads=2, layers=3).eval()


IDS = torch.arange(1, 10)[None]


def printed(found, **options):
    shown = io.StringIO()
    show_effects(SafeConsole(width=100, color_system=None, file=shown), found, **options)
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines())


def test_a_map_of_heads_has_the_numbers_of_the_table(decoder):
    found = regard.ablate(decoder, IDS, metrics.loss)
    axes, _ = figures.effects(found).axes
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("layer", "head")
    drawn = np.asarray(axes.images[0].get_array())
    assert np.allclose(drawn, found.grid())
    low, high = axes.images[0].get_clim()
    assert -low == high == pytest.approx(np.abs(found.grid()).max())  # white is no difference
    assert axes.get_title("left") == f"Change of loss without a head ({found.before:.3g} with all of them)"
    assert "变化" in figures.effects(found, lang="zh").axes[0].get_title("left")
    assert figures.effects(found, title="").axes[0].get_title("left") == ""


def test_layers_and_keys_are_bars_and_edges_a_map(decoder):
    layers = regard.ablate(decoder, IDS, metrics.loss, by="layer")
    bars = figures.effects(layers).axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx(layers.table.column("difference"))
    keys = regard.ablate(decoder, IDS, metrics.loss, by="key")
    names = [
        tick.get_text() for tick in figures.effects(keys, labels=list("abcdefghi")).axes[0].get_yticklabels()
    ]
    assert names[2] == "2 c"
    edges = regard.ablate(decoder, IDS, metrics.loss, by="edge")
    image = figures.effects(edges).axes[0].images[0].get_array()
    assert np.ma.is_masked(image[0, 5])  # not seen, so not tried
    assert not np.ma.is_masked(image[5, 0])


def test_every_kind_has_its_map():
    torch.manual_seed(0)
    model = regard.nn.Seq2Seq(20, 30, width=16, heads=2, hidden=8, encoder_layers=1, decoder_layers=2)
    pair = (torch.arange(3, 9)[None], torch.arange(3, 8)[None])
    found = regard.ablate(model, pair, metrics.loss)
    names = [axes.get_xlabel() for axes in figures.effects(found).axes]
    assert names == ["head (encoder)", "head (decoder)", "head (cross)", ""]
    assert len(figures.effects(found, kind="cross").axes) == 2
    said = printed(found)
    assert "cross" in said
    assert "encoder" in said


def test_the_terminal_shows_the_strongest_with_their_roles(decoder):
    found = regard.ablate(decoder, IDS, metrics.loss)
    with torch.no_grad(), regard.watch(decoder) as seen:
        decoder(IDS)
    seen.tokens = [f"t{n}" for n in range(9)]
    roles = regard.heads.roles(seen)
    said = printed(found, roles=roles, most=4).splitlines()
    best = found.strongest(1)[0]
    assert said[0] == f"Change of loss without each head ({found.before:.3f} with all of them)"
    assert said[2].split()[:3] == [
        str(best["layer"]),
        str(best["head"]),
        f"{best['difference']:+.3f}".replace("-", "−"),
    ]
    assert "█" in said[2]
    assert said[-1] == "… and 2 more"
    assert any("looks" in line or "spreads" in line or "role" in line for line in said[2:6])
    chinese = printed(found, roles=roles, lang="zh")
    assert "逐个去掉注意力头时 loss 的变化" in chinese
    keys = regard.ablate(decoder, IDS, metrics.loss, by="key")
    assert "t3" in printed(keys, tokens={"decoder": seen.tokens[0]})


def test_each_kind_has_the_labels_of_its_own_keys(decoder):
    keys = regard.ablate(decoder, IDS, metrics.loss, by="key")
    drawn = figures.effects(keys, labels={"decoder": list("abcdefghi"), "cross": ["x"]})
    assert "3 d" in [tick.get_text() for tick in drawn.axes[0].get_yticklabels()]
    with pytest.raises(ShapeError, match=r"keys = 9\). Got 1 labels"):
        figures.effects(keys, labels={"decoder": ["x"]})


def test_a_stopped_sweep_says_so(decoder):
    found = regard.ablate(decoder, IDS, metrics.loss, together=2, stop=lambda: True)
    assert "Stopped: the other edits were not tried." in printed(found)


def test_eviction_draws_a_line_for_each_policy(decoder):
    with torch.no_grad(), regard.watch(decoder) as seen:
        decoder(torch.arange(40)[None])
    found = regard.heads.eviction(seen)
    (axes,) = figures.eviction(found).axes
    assert [line.get_label() for line in axes.lines] == list(found.policies)
    wanted = [row["kept"] for row in found.means if row["policy"] == "oracle"]
    assert list(axes.lines[-1].get_ydata()) == pytest.approx(wanted)
    assert axes.get_title("left") == "Cache cut at token 20 of 40"
    assert "缓存" in figures.eviction(found, lang="zh").axes[0].get_title("left")


def test_what_is_refused(decoder):
    found = regard.ablate(decoder, IDS, metrics.loss, by="key")
    with pytest.raises(DtypeError, match=r"needs the result of regard.ablate. Got Table"):
        figures.effects(found.table)
    with pytest.raises(DtypeError, match=r"needs the result of regard.heads.eviction. Got Ablation"):
        figures.eviction(found)
    with pytest.raises(DtypeError, match=r"needs the result of regard.ablate. Got Table"):
        printed(found.table)
    with pytest.raises(ShapeError, match=r"keys = 9\). Got 2 labels"):
        figures.effects(found, labels=["a", "b"])
    with pytest.raises(ArgumentError, match="Got kind = 'cross'"):
        figures.effects(found, kind="cross")


# ---- in the browser ------------------------------------------------------------------------------


def test_a_page_shows_effects_in_the_table_and_on_the_cards(decoder, opened, tmp_path):
    with torch.no_grad(), regard.watch(decoder) as seen:
        decoder(IDS)
    found = regard.ablate(decoder, IDS, metrics.loss)
    shown = opened(regard.page(seen, tmp_path / "effects.html", effects=found, view="heads")).page
    wanted = sorted((row["difference"] for row in found.table), reverse=True)
    shown.wait_for_selector('td[data-name="effect"]')
    cells = [
        float(text.replace("−", "-")) for text in shown.locator('td[data-name="effect"]').all_inner_texts()
    ]
    assert cells == pytest.approx(wanted, abs=1e-3)  # the greatest first
    assert shown.locator('th button[data-sort="effect"]').inner_text().endswith("Effect")
    shown.evaluate("location.hash = '#view=overview&sort='")
    shown.wait_for_selector(".overview .card")
    numbers = shown.locator(".card .caption .number").all_inner_texts()
    assert len(numbers) == 6  # a badge on every head


def test_a_notebook_has_every_option_of_a_page(decoder):
    of_page, of_show = (inspect.signature(one).parameters for one in (regard.page, regard.show))
    assert of_page.keys() - of_show.keys() == {"path"}
    assert of_show.keys() - of_page.keys() == {"height", "compact"}
    for name in (of_show.keys() & of_page.keys()) - {"other"}:  # which may be a path of page()
        assert of_show[name] == of_page[name]
    with torch.no_grad(), regard.watch(decoder) as seen:
        decoder(IDS)
    shown = regard.show(seen, effects=regard.ablate(decoder, IDS, metrics.loss))
    assert re.search(r'"sort":\s*"effect"', shown.data)
    with pytest.raises(ArgumentError, match="effects must be the result of"):
        regard.show(seen, effects=3)
