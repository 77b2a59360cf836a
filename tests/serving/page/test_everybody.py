"""The page for everybody: by keyboard, by its accessibility tree, on a phone, in the dark, in any script and length."""

import numpy as np
import pytest
from live_page import (
    choose,
    chosen,
    numbers,
    open_table,
    screenshot,
    type_sentence,
    until,
    wait_until_settled,
    wait_until_shown,
)

# A plain div is a group to the tree, too, but nothing to a reader if it has no name: groups are looked at one by one.
CONTROLS = {
    *("button", "combobox", "DisclosureTriangle", "image", "img", "link", "radio", "region"),
    *("slider", "textbox"),
}

# Every text that is seen, with the contrast of its colour to what is painted below it.
CONTRASTS = """() => {
  const number = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3)
    .map((value) => value / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, k) => sum + part * [0.2126, 0.7152, 0.0722][k], 0);
  const below = (element) => {
    for (; element; element = element.parentElement) {
      const rgb = number(getComputedStyle(element).backgroundColor);
      if (rgb.length === 3 || rgb[3] > 0) return rgb;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((element) => {
      const [a, b] = [number(getComputedStyle(element).color), below(element)].map(luminance);
      return [element.textContent.trim().slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    });
}"""


def tab_to(page, is_there, most=80):
    """Presses Tab until the focus is where it is wanted."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(
            f"(() => {{ const it = document.activeElement; return Boolean({is_there}); }})()"
        ):
            return
    raise AssertionError(is_there)


def test_by_keyboard_alone(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the sentences"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "sentences"
    tab_to(page, "it.textContent.startsWith('can ')")
    page.keyboard.press("Enter")
    until(page, lambda: chosen(page) == ["can"] * 3)
    wait_until_settled(page)
    # One stop for the words of a sentence, the arrows within.
    tab_to(page, "it.type === 'radio' && it.checked")
    page.keyboard.press("ArrowRight")
    assert chosen(page)[0] == "speak"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert chosen(page)[0] == "She"
    outline = page.evaluate("getComputedStyle(document.activeElement.parentElement).outlineStyle")
    assert outline == "solid"
    tab_to(page, "it.ariaLabel === 'One token more'")
    page.keyboard.press("Enter")
    assert chosen(page)[0] == "She can"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.ariaLabel") == "One token more"
    tab_to(page, "it.textContent === 'Add a sentence'")
    page.keyboard.press("Space")
    page.keyboard.type("You can see it.")
    until(page, lambda: len(numbers(page, "#similarity td")) == 6)
    before = numbers(page, "#similarity td")
    tab_to(page, "it.type === 'range'")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert page.locator(".sliders .value").first.inner_text().startswith("1.0")
    after = numbers(page, "#similarity td")
    assert (after[:, :3] == before[:, :3]).all()
    assert (after[:, 3] != before[:, 3]).any()
    tab_to(page, "it.name === 'layer'")
    page.keyboard.press("ArrowLeft")
    assert "In layer 1" in page.locator("#nearest p").first.inner_text()
    tab_to(page, "it.classList.contains('columns')")
    page.keyboard.press("ArrowDown")
    assert "sentence 3" in page.locator("canvas").get_attribute("aria-label")
    tab_to(page, "it.tagName === 'SUMMARY'")
    page.keyboard.press("Enter")
    page.wait_for_selector("#map td.number")
    tab_to(page, "it.id === 'invented'")
    page.keyboard.press("Control+A")
    page.keyboard.type("cannot")
    until(page, lambda: page.locator("#characters tbody th").all_inner_texts() == ["cannot"])


def test_the_accessibility_tree(page):
    open_table(page)
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in nodes
        if not node["ignored"]
    ]
    assert [role for role, name in found if role in CONTROLS and not name] == []
    assert ("textbox", "Sentence 2") in found
    assert ("group", "Word of sentence 2") in found
    assert ("radio", "river") in found
    assert ("slider", "Layer 0 weight") in found
    assert ("button", "Remove sentence 1") in found
    names = [name for role, name in found if role == "button"]
    assert len(names) > 8
    headings = [
        node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "heading"
    ]
    assert headings[:3] == [
        "A word’s vector depends on its sentence",
        "Sentences",
        "How alike the chosen words are",
    ]
    status = page.get_by_role("status").first
    assert "nearest" in status.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, scheme):
    page.emulate_media(color_scheme=scheme)
    open_table(page)
    choose(page, 1, "river")
    wait_until_shown(page)
    low = [
        (text, round(contrast, 2)) for text, contrast in page.evaluate(CONTRASTS) if contrast < 4.5
    ]
    assert low == []


def test_on_a_phone_in_the_dark(open_page, server):
    page = open_page(
        server.rest_address,
        viewport={"width": 360, "height": 740},
        color_scheme="dark",
        has_touch=True,
        is_mobile=True,
        device_scale_factor=2,
    )
    wait_until_shown(page)
    # Nothing is wider than the screen, and the table of similarities is whole.
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.locator("#similarity td").last.bounding_box()["x"] < 330
    page.get_by_role("radio", name="river").tap()
    assert chosen(page)[0] == "river"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 23, 26)"
    screenshot(page, "phone_dark")


FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


def test_emoji_and_right_to_left(page):
    type_sentence(
        page, 1, f"The {FAMILY} went 🇩🇪 to the e\u0301te\u0301 \u200b <b>bank</b> & {FAMILY * 40}."
    )
    type_sentence(page, 2, "הבנק ליד הנהר.")
    type_sentence(page, 3, "البنك قريب من النهر ")
    # Half a surrogate pair, which is no text: no keyboard can type it, a script can.
    field = page.get_by_label("Sentence 3", exact=True)
    field.evaluate("it => { it.value += '\\ud800'; it.dispatchEvent(new Event('input')); }")
    wait_until_settled(page)
    words = [
        page.get_by_role("group", name=f"Word of sentence {number}")
        .locator("label")
        .all_inner_texts()
        for number in (1, 2, 3)
    ]
    assert words[0][:7] == ["The", FAMILY, "went", "🇩🇪", "to", "the", "e\u0301te\u0301"]
    assert "U+200B" in words[0]
    assert words[1] == ["הבנק", "ליד", "הנהר", "."]
    assert words[2] == ["البنك", "قريب", "من", "النهر"]
    # The first word stands at the right.
    left = [
        page.get_by_role("radio", name=name, exact=True).bounding_box()["x"]
        for name in words[1][:3]
    ]
    assert left == sorted(left, reverse=True)
    choose(page, 1, FAMILY)
    choose(page, 2, "הבנק")
    wait_until_shown(page)
    assert np.isfinite(numbers(page, "#similarity td")).all()
    until(page, lambda: page.locator(".grapheme").all_inner_texts() == [FAMILY])
    assert "18 bytes" in page.locator(".spelling").inner_text()
    screenshot(page, "emoji_and_right_to_left")


def test_a_word_longer_than_the_model_reads(page):
    type_sentence(page, 1, "a" * 60 + " bank")
    choose(page, 1, "a" * 60)
    until(page, lambda: "the model reads the first 48" in page.locator(".spelling").inner_text())


def test_500_words(page):
    text = " ".join(f"The bank number {k} is open for the people of the city ." for k in range(39))
    type_sentence(page, 1, text)
    type_sentence(page, 2, text.replace("bank", "river"))
    choose(page, 2, "river")
    wait_until_shown(page)
    assert page.locator("#editors .words").first.get_by_role("radio").count() == 507
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    assert "507 words of sentence 1 against 507 of sentence 2" in page.locator(
        "canvas"
    ).get_attribute("aria-label")
    open_table(page)
    assert numbers(page, "#map td.number").shape == (24, 24)
    assert "The table has the 24 words around" in page.locator("details p").inner_text()
    screenshot(page, "500_words")


def test_late_answers_are_dropped(page, server):
    """The answer to what is not there any more comes last, and changes nothing."""
    held = []
    predict = f"http://{server.rest_address}/v1/models/*:predict"

    def hold(route):
        if "slow" in route.request.post_data:
            held.append(route)
        else:
            route.continue_()

    page.route(predict, hold)
    page.get_by_label("Sentence 1", exact=True).fill("A slow bank.")
    until(page, lambda: held)
    assert page.locator(".words.stale").count() == 1
    type_sentence(page, 1, "A quick bank.")
    held[0].continue_()
    page.wait_for_timeout(300)
    assert (
        page.get_by_role("group", name="Word of sentence 1").locator("label").all_inner_texts()[1]
        == "quick"
    )


def test_typing_asks_once(page):
    asked = []
    page.on(
        "request",
        lambda request: asked.append(request.post_data) if request.method == "POST" else None,
    )
    page.get_by_label("Sentence 1", exact=True).press_sequentially(" It is here.", delay=20)
    wait_until_settled(page)
    assert len([body for body in asked if '"text"' in body]) == 1
