"""A real browser for the tests of pages."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window; the tests are skipped where there is none, except in CI."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        how = "No Chromium found. Install it: apt-get install chromium fonts-noto-cjk, or run make browser."
        if os.environ.get("CI") == "true":
            pytest.fail(how)
        pytest.skip(how)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser):
    """Opens a file and watches it: any request, console error or uncaught error fails the test."""
    from views.browser import Opened

    contexts = []

    def open_page(path, **options):
        context = browser.new_context(**{"bypass_csp": True, **options})
        contexts.append(context)
        return Opened(context, path)

    yield open_page
    try:
        for context in contexts:
            context.opened.check()
    finally:
        for context in contexts:
            context.close()


@pytest.fixture(scope="session")
def _full(browser, tmp_path_factory):
    from views import stage, viewing

    return viewing.open_stage(browser, tmp_path_factory.mktemp("full"), stage.everything())


@pytest.fixture(scope="session")
def _far(browser, tmp_path_factory):
    from views import stage, viewing

    return viewing.open_stage(browser, tmp_path_factory.mktemp("far"), stage.long(701))


@pytest.fixture
def page(_full):
    """A page of three kinds of attention with every option, as it first opened; one for all tests."""
    _full.reset()
    yield _full
    _full.opened.check()


@pytest.fixture
def longer(_far):
    """The same of a text of 701 tokens."""
    _far.reset()
    yield _far
    _far.opened.check()
