"""Fixtures of the page's tests: Chromium, a server with the bundled English model, and a tab of it."""

import os
import shutil

import keras
import pytest
from live_page import wait_until_shown

if keras.backend.backend() != "tensorflow":
    collect_ignore_glob = ["*"]
else:
    import keras_elmo
    from keras_elmo import presets
    from keras_elmo.export import LanguageModelServer, export_saved_model
    from keras_elmo.serving.server import LocalServer

# Where it is set, as .ci/run does, the browser must be there.
BROWSER = "KERAS_ELMO_TEST_BROWSER"
WAIT = 30_000


@pytest.fixture(scope="session")
def browser():
    """A Chromium of this machine, driven by playwright, which is to download none of its own."""
    required = os.environ.get(BROWSER)
    names = [required] if required else ["chromium", "chromium-browser", "google-chrome"]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and not required:
        pytest.skip(f"there is no Chromium: install one, or give its path by {BROWSER}")
    assert found, f"{BROWSER} is {required!r}, which is no program"
    if required:
        from playwright import sync_api
    else:
        sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        # The sandbox refuses to start as root, as which containers often run.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(browser, tmp_path_factory):
    """The bundled English model, with its language model."""
    language_model = keras_elmo.load_language_model(presets.DEFAULT_PRESET)
    folder = tmp_path_factory.mktemp("served") / presets.DEFAULT_PRESET
    export_saved_model(LanguageModelServer(language_model), folder, metadata={"language": "en"})
    with LocalServer(folder, 0, 0) as server:
        yield server


@pytest.fixture
def open_page(browser):
    """Opens a server's page in a tab of its own: it asks nobody else, and no script of it fails."""
    tabs = []

    def open_page(address, fragment="", prepare=lambda page: None, **context):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        context.set_default_timeout(WAIT)
        page = context.new_page()
        asked, failed = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.on("console", lambda line: failed.append(line.text) if line.type == "error" else None)
        tabs.append((context, address, asked, failed))
        prepare(page)
        page.goto(f"http://{address}/{fragment}")
        page.forget_errors = failed.clear
        return page

    yield open_page
    for context, address, asked, failed in tabs:
        context.close()
        assert asked
        assert [url for url in asked if not url.startswith(f"http://{address}/")] == []
        assert failed == []


@pytest.fixture
def page(open_page, server):
    """The page with its first example, all of it shown."""
    page = open_page(server.rest_address)
    wait_until_shown(page)
    return page
