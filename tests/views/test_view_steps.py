"""Steps: every number is that of the definition."""

import numpy as np
import pytest
import torch

from regard.recording import DenseCall, Recording
from views import stage
from views.viewing import CLOSE, open_stage


@pytest.mark.parametrize(("call", "head", "query"), [(0, 1, 4), (2, 3, 5), (4, 0, 6)])
def test_steps_are_those_of_the_definition(page, call, head, query):
    page.set(view="steps", call=call, head=head, query=query)
    trace = page.shown.traces[call]
    for row in page.page.locator(".steps-table tbody tr").all():
        key = int(row.get_attribute("data-key"))
        assert float(row.get_attribute("data-weight")) == pytest.approx(
            trace["weights"][0, head, query, key], abs=CLOSE
        )
        assert float(row.get_attribute("data-dot")) == pytest.approx(
            trace["dots"][0, head, query, key], abs=CLOSE
        )
        cells = row.locator("td").all_inner_texts()
        assert float(cells[1].replace("−", "-")) == pytest.approx(
            trace["dots"][0, head, query, key], abs=CLOSE
        )
    output = [float(x) for x in page.page.locator("[data-output]").get_attribute("data-output").split()]
    assert np.allclose(output, trace["output"][0, head, query], atol=CLOSE)
    assert page.text('[data-total="total"]') == "1.0000"


def test_steps_show_cap_bias_mask_and_sink(page):
    page.set(view="steps", call=2, head=3, query=4)
    headings = page.page.locator(".steps-table th").all_inner_texts()
    assert [text.split("\n")[0] for text in headings] == [
        "Key",
        "Dot product",
        "Scaled",
        "Capped",
        "Bias",
        "Score",
        "Weight",
        "Weighted value",
    ]
    assert page.page.locator("tr.masked").count() == 2
    trace = page.shown.traces[2]
    sink = 1 - trace["weights"][0, 3, 4].sum()
    assert float(page.text('[data-total="sink"]')) == pytest.approx(sink, abs=CLOSE)
    capped = [
        row.locator("td").all_inner_texts()[3] for row in page.page.locator("tbody tr:not(.masked)").all()
    ]
    keys = [int(row.get_attribute("data-key")) for row in page.page.locator("tbody tr:not(.masked)").all()]
    assert np.allclose(
        [float(text.replace("−", "-")) for text in capped], trace["capped"][0, 3, 4, keys], atol=CLOSE
    )


def test_steps_open_a_key_channel_by_channel(page):
    page.set(view="steps", call=0, head=0, query=2)
    page.page.click('.steps-table tr[data-key="7"]')
    products = page.page.locator(".products li").all_inner_texts()
    assert len(products) == 8 + 1
    total = float(products[-1].split()[-1].replace("−", "-"))
    assert total == pytest.approx(page.shown.traces[0]["dots"][0, 0, 2, 7], abs=CLOSE)


def test_steps_fold_many_keys_and_unfold_them(longer):
    longer.set(view="steps", query=600)
    assert longer.page.locator(".steps-table tbody tr").count() == 10
    row = np.sort(longer.shown.weights(0, 0)[600])[::-1]
    assert float(longer.text('[data-total="rest"]')) == pytest.approx(row[10:].sum(), abs=CLOSE)
    longer.page.click("text=Show 200 more keys")
    assert longer.page.locator(".steps-table tbody tr").count() == 210
    assert "values=True" in longer.text(".steps-body")


def test_steps_of_dense_weights_say_why_not(browser, tmp_path):
    weights = torch.softmax(torch.randn(1, 2, 5, 5), -1)
    shown = stage.Stage(
        Recording("Bloom", [DenseCall("attentions.0", "decoder", 0, weights)]),
        [{"weights": weights.numpy()}],
    )
    page = open_stage(browser, tmp_path, shown, view="steps")
    assert "returned its weights directly" in page.text(".steps")
    page.set(view="matrix", head=1)
    page.point(3, 2)
    assert page.readout()[2] == pytest.approx(float(weights[0, 1, 3, 2]), abs=CLOSE)
    assert "The model returned" in page.run("(regard.state.set({ view: 'steps' }), regard.exportSvg())")
    page.opened.check()
    page.page.context.close()


def test_steps_open_on_a_word(page):
    # The last row of cross-attention writes a token that nobody has read, and has no name.
    for call, token in ((0, "paper"), (2, "上"), (4, "上")):
        page.set(view="steps", call=call, query=None)
        assert page.page.locator(".token-strip [aria-pressed=true] bdi").inner_text() == token


def test_the_total_is_below_the_weights_on_a_phone(browser, tmp_path):
    phone = open_stage(browser, tmp_path, stage.everything(), screen={"width": 390, "height": 844})
    phone.set(view="steps", call=0, query=3)
    total, weight = (
        phone.page.locator(where).first.bounding_box()
        for where in ('[data-total="total"]', ".steps-table td.weight")
    )
    assert abs(total["x"] + total["width"] - weight["x"] - weight["width"]) < 1
    assert phone.text('[data-total="total"]') == "1.0000"
    phone.opened.check()
    phone.page.context.close()
