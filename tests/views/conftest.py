"""A real browser for the tests of pages."""

import os
import shutil

import pytest

# The first is Chromium without its window and tabs: the same pages for half the CPU.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window; the tests are skipped where there is none, except in CI."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        how = (
            "No Chromium found. Run make browser, or: apt-get install chromium-headless-shell fonts-noto-cjk."
        )
        if os.environ.get("CI") == "true":
            pytest.fail(how)
        pytest.skip(how)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        if delay := int(os.environ.get("REGARD_LATE_PAGES", "0")):
            from views.browser import come_late

            come_late(chromium, delay)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def tabs(browser):
    """Pages to borrow."""
    from views.browser import Tabs

    return Tabs(browser)


@pytest.fixture
def opened(tabs):
    """Opens a file and watches it: any request, console error or uncaught error fails the test."""
    from views.browser import Opened

    pages = []

    def open_page(path, **options):
        pages.append(Opened(tabs.take(**{"bypass_csp": True, **options}), path))
        return pages[-1]

    yield open_page
    try:
        for page in pages:
            page.check()
    finally:
        for page in pages:
            page.heard.stop()
            tabs.give_back(page.page)


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
