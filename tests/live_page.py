"""What the tests of the live page do with a tab: type, choose, read numbers, take pictures."""

import re
import time
from pathlib import Path

import numpy as np

SCREENSHOTS = Path(__file__).parents[1] / "build" / "screenshots"


def until(page, is_so, seconds=30):
    """Waits until a condition holds. The page's own policy lets nobody evaluate conditions in it."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, page.locator("body").inner_text()
        page.wait_for_timeout(20)


def wait_until_shown(page):
    """Waits for all that is shown of a language model."""
    wait_until_settled(page)
    page.wait_for_selector("#substitutes:not([hidden]) li")
    page.wait_for_selector("#characters:not([hidden]) tbody tr")


def wait_until_settled(page):
    """Waits until no sentence awaits its answer."""
    page.wait_for_selector("#similarity:not([hidden], .stale)")
    until(page, lambda: page.locator(".words.stale:visible").count() == 0)


def type_sentence(page, number, text):
    """Types a sentence and waits for its answer."""
    page.get_by_label(f"Sentence {number}", exact=True).fill(text)
    wait_until_settled(page)


def choose(page, number, word):
    """Chooses a word of a sentence by the mouse."""
    words = page.get_by_role("group", name=f"Word of sentence {number}")
    words.get_by_role("radio", name=word, exact=True).first.click()


def open_table(page):
    """Opens the table of the heat map."""
    page.get_by_text("The same as a table of numbers").click()
    page.wait_for_selector("#map td.number")


def chosen(page):
    """The chosen word of every sentence."""
    return page.locator("#editors .chosen:visible bdi").all_inner_texts()


def numbers(page, selector):
    """The numbers of a table's cells, a row for each of its rows."""
    cells = page.locator(selector)
    rows = cells.evaluate_all("cells => cells.map(cell => cell.parentElement.rowIndex)")
    values = np.array(cells.all_inner_texts(), float)
    return values.reshape(len(set(rows)), -1)


def shares(page, selector):
    """Percentages, as parts of 1."""
    texts = page.locator(selector).all_inner_texts()
    found = [re.search(r"([\d.]+) %", text) for text in texts]
    return np.array([float(match[1]) / 100 for match in found if match])


def screenshot(page, name):
    """Keeps a picture of the whole page, for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
