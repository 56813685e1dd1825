"""A picture that is dropped on the app is read by the model of pictures, and shown."""

import base64

import pytest

from app.served import Words, running, served
from app.test_serve_pictures import png
from recording.test_picture import reader_of
from recording.test_vision_language import saved
from regard.app.server.safety import ServerAddress
from regard.app.server.served_models import load_models
from regard.app.server.served_pictures import PictureModel
from views.axe import violations
from views.visiting import Visitor

NAME = "<img src=x onerror=alert(1)>.png"

DROP = """({ name, content, type }) => {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const dropped = new DataTransfer();
  dropped.items.add(new File([bytes], name, { type }));
  const event = new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true });
  document.querySelector("form.reading").dispatchEvent(event);
}"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vit")
    reader_of("vit", folder)
    both = tmp_path_factory.mktemp("both")
    saved("llava", both)
    models = [one for one in load_models([str(folder), str(both)]) if isinstance(one, PictureModel)]

    def app_of(port):
        return served(models=[Words(), *models], server_address=ServerAddress(port=port))

    with running(app_of) as address:
        yield address


@pytest.fixture
def home(tabs, base):
    visitor = Visitor(tabs, base)
    yield visitor.open("/").until("window.regard?.home")
    problems = visitor.problems
    visitor.leave()
    assert not problems


def drop(visitor, content, name=NAME, type="image/png"):
    given = {"name": name, "content": base64.b64encode(content).decode(), "type": type}
    visitor.page.evaluate(DROP, given)


def test_a_dropped_picture_chooses_its_model_and_is_shown(home):
    drop(home, png())
    home.until("regard.home.picture.content")
    assert home.ask("regard.home.model.value") == "model-0"
    assert home.page.locator("textarea").first.is_hidden()
    assert NAME in home.page.inner_text(".picture-input")
    assert home.page.locator("img").count() == 0
    assert violations(home.page) == []
    home.page.click("button.primary")
    home.until("location.pathname.startsWith('/look/') && window.regard?.app?.view?.grey")
    assert home.ask("regard.state.now.view") == "picture"
    assert home.ask("regard.recording.picture.grid") == [4, 4]
    assert NAME in home.page.inner_text("h1")


def test_a_picture_is_asked_about(home):
    """A model that is chosen keeps the picture; its question stands below."""
    home.page.select_option("select", "model-1")
    drop(home, png())
    home.until("regard.home.picture.content")
    assert home.ask("regard.home.model.value") == "model-1"
    assert "reads pictures with a question" in home.page.inner_text(".reading-bar")
    assert violations(home.page) == []
    home.page.get_by_label("A question about the picture").fill("What is this ?")
    home.page.click("button.primary")
    home.until("location.pathname.startsWith('/look/') && window.regard?.app?.view?.grey")
    assert home.ask("regard.recording.calls[0].queryTokens.slice(-4)") == ["What", "is", "this", "?"]
    assert "What gives" in home.page.inner_text(".picture-said, .view")


def test_a_large_picture_is_made_small_before_it_is_sent(home):
    drop(home, png(1600, 900))
    home.until("regard.home.picture.content")
    sent = home.ask("regard.home.picture.content.length")
    assert sent <= 4 * home.ask("regard.home.state.limits.picture") / 3
    assert max(home.ask("[regard.home.picture.preview.width, regard.home.picture.preview.height]")) <= 260


def test_what_cannot_be_read_is_said(home):
    drop(home, b"not a picture")
    home.until("document.querySelector('.note.error')")
    assert "not a picture" in home.page.inner_text(".note")
    home.page.select_option("select", "model-0")
    home.page.click("button.primary")
    assert "Drop or open a picture first" in home.page.inner_text(".note.error")


def test_without_a_model_of_pictures_it_says_so(home):
    home.ask(
        "(regard.home.state.models = regard.home.state.models.filter(({ kind }) => kind !== 'picture'), 0)"
    )
    drop(home, png())
    home.until("document.querySelector('.note.error')")
    assert "No model here reads pictures" in home.page.inner_text(".note.error")
    assert home.page.locator("textarea").first.is_visible()


def test_it_speaks_chinese(home):
    home.page.select_option("select", "model-0")
    home.page.click("text=中文")
    assert "把图像拖到这里" in home.page.inner_text(".picture-input")


def test_a_small_picture_is_shown_large_and_a_click_opens_a_file(home):
    drop(home, png(24, 24))
    home.until("regard.home.picture.content")
    home.until("regard.home.picture.preview.getBoundingClientRect().height >= 128")
    with home.page.expect_file_chooser():
        home.page.click(".picture-input")
