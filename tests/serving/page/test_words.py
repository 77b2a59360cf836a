"""The page shows what it says of an embedding model: its numbers are those of the REST interface."""

import json
import urllib.request

import numpy as np
import pytest
from live_page import (
    choose,
    chosen,
    numbers,
    open_table,
    screenshot,
    shares,
    type_sentence,
    until,
    wait_until_settled,
    wait_until_shown,
)

BANKS = [
    "He sat on the bank of the river.",
    "The bank lent him the money.",
    "The bank paid its debts.",
]
PLACES = [4, 1, 1]


def ask(server, signature, row):
    """The outputs of one row, as any other client gets them."""
    body = json.dumps({"signature_name": signature, "instances": [row]}).encode()
    url = f"http://{server.rest_address}/v1/models/{server.versions.name}:predict"
    return json.load(urllib.request.urlopen(url, body, timeout=120))["predictions"][0]


def layers(server, text):
    """Array (layers, tokens, dim), layer 0 twice as wide as it comes."""
    answer = ask(server, "default", {"text": text})
    size = answer["sequence_len"]
    upper = [np.array(answer[f"lstm_outputs{k}"][:size]) for k in (1, 2)]
    return np.stack([np.tile(answer["word_emb"][:size], 2), *upper])


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def mixed(vectors, weights, gamma=1.0):
    powers = np.exp(weights)
    return gamma * np.tensordot(powers / powers.sum(), vectors, 1)


def pairs(words):
    """Of three words, each (layers, dim): a row of numbers for each pair, as the table has them."""
    return [
        [cosine(a, b) for a, b in zip(words[i], words[j], strict=True)]
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]


def choose_layer(page, name):
    """Of the map and the nearest words."""
    page.get_by_role("group", name="Layer").get_by_role("radio", name=name, exact=True).click()


def test_layer_0_stays_and_the_upper_layers_move(page, server):
    words = [layers(server, text)[:, place] for text, place in zip(BANKS, PLACES, strict=True)]
    with_mix = [np.vstack([word, mixed(word, np.zeros(3))]) for word in words]
    found = numbers(page, "#similarity td")
    np.testing.assert_allclose(found, pairs(with_mix), atol=6e-4)
    assert found[:, 0].tolist() == [1, 1, 1]
    assert (found[:, 1:3] < 0.98).all()
    assert found[2, 2] > found[0, 2] + 0.2  # money is near debts, far from the river
    said = page.locator("#said").text_content()
    assert said == page.locator("#similarity .summary").text_content()
    assert "is the same vector everywhere (1.000)" in said
    assert "the nearest are 2 and 3" in said
    screenshot(page, "light")


def test_the_sentence_that_explains_it(page):
    lead = page.locator("header .lead:visible").inner_text()
    assert "Layer 0 knows the characters only: the same word always has the same vector." in lead
    assert "The upper layers read the sentence." in lead
    assert "elmo_tiny_en, version 1, English" in page.locator("#model").inner_text()


def test_choosing_by_mouse(page, server):
    choose(page, 1, "river")
    choose(page, 2, "money")
    vectors = layers(server, BANKS[0])[:, 7], layers(server, BANKS[1])[:, 5]
    expected = [cosine(a, b) for a, b in zip(*vectors, strict=True)]
    np.testing.assert_allclose(numbers(page, "#similarity td")[0, :3], expected, atol=6e-4)
    assert "“\u2068bank\u2069” is the same" not in page.locator(".summary").inner_text()
    assert page.locator("#similarity tbody th").first.inner_text().split() == [
        "1",
        "~",
        "2",
        "river",
        "~",
        "money",
    ]


def test_a_word_of_several_tokens_is_their_mean(page, server):
    for _ in range(2):
        page.get_by_role("button", name="One token more").first.click()
    page.get_by_role("button", name="One token less").first.click()
    assert chosen(page)[0] == "bank of"
    vectors = layers(server, BANKS[0])[:, 4:6].mean(axis=1), layers(server, BANKS[1])[:, 1]
    expected = [cosine(a, b) for a, b in zip(*vectors, strict=True)]
    np.testing.assert_allclose(numbers(page, "#similarity td")[0, :3], expected, atol=6e-4)


def test_sliders_mix_at_once(page, server):
    words = [layers(server, text)[:, place] for text, place in zip(BANKS, PLACES, strict=True)]
    asked = []
    page.on("request", lambda request: asked.append(request.method))
    weights, gamma = [1.5, -2.0, 0.7], 2.5
    for name, value in zip(
        ["Layer 0 weight", "Layer 1 weight", "Layer 2 weight", "Gamma"],
        [*weights, gamma],
        strict=True,
    ):
        page.get_by_role("slider", name=name).fill(str(value))
    mixes = [mixed(word, weights, gamma) for word in words]
    expected = [cosine(mixes[i], mixes[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(numbers(page, "#similarity td")[:, 3], expected, atol=6e-4)
    assert "POST" not in asked
    powers = np.exp(weights)
    np.testing.assert_allclose(
        shares(page, ".sliders .value")[:3], powers / powers.sum(), atol=6e-3
    )
    lengths = page.locator(".lengths").inner_text()
    for number, mix in enumerate(mixes, 1):
        assert f"{number}: {np.linalg.norm(mix):.2f}" in lengths
    assert f"Distance of 1 and 2: {np.linalg.norm(mixes[0] - mixes[1]):.2f}" in lengths
    # Gamma alone: longer vectors in the same direction.
    before = numbers(page, "#similarity td").tolist()
    page.get_by_role("slider", name="Gamma").fill("0.5")
    assert numbers(page, "#similarity td").tolist() == before
    assert f"1: {np.linalg.norm(mixes[0]) / 5:.2f}" in page.locator(".lengths").inner_text()
    page.get_by_role("button", name="Equal shares").click()
    np.testing.assert_allclose(shares(page, ".sliders .value")[:3], [1 / 3] * 3, atol=6e-3)


def test_the_heat_map_and_its_table(page, server):
    choose_layer(page, "1")
    page.get_by_label("Columns").select_option(label="Sentence 3")
    open_table(page)
    a, b = layers(server, BANKS[0])[1], layers(server, BANKS[2])[1]
    expected = [[cosine(row, column) for column in b] for row in a]
    np.testing.assert_allclose(numbers(page, "#map td.number"), expected, atol=6e-3)
    name = page.get_by_role("img", name="Heat map of layer 1").get_attribute("aria-label")
    assert "9 words of sentence 1 against 6 of sentence 3" in name
    # Under the pointer: the number of the cell, here of the two banks, which is drawn in the colour of its size.
    box = page.locator("canvas").bounding_box()
    left, top = box["width"] - 44 * 6, box["height"] - 44 * 9
    page.locator("canvas").hover(position={"x": left + 1.5 * 44, "y": top + 4.5 * 44})
    under = page.locator(".under-pointer").inner_text()
    assert under.startswith("bank ~ bank ")
    assert float(under.split()[-1]) == pytest.approx(expected[4][1], abs=6e-4)


def test_nearest_words(page, server):
    choose_layer(page, "0")
    first = page.locator("#nearest .columns > div").first
    assert first.locator("h3").inner_text().split() == ["1", "bank"]
    assert first.locator("b").all_inner_texts()[:2] == ["bank", "bank"]
    assert first.locator("li .number").all_inner_texts()[:2] == ["1.000", "1.000"]
    choose_layer(page, "2")
    vectors = [layers(server, text)[2] for text in BANKS]
    others = [
        cosine(vectors[1][1], row)
        for k, rows in enumerate(vectors)
        for place, row in enumerate(rows)
        if (k, place) != (1, 1)
    ]
    found = page.locator("#nearest .columns > div").nth(1).locator("li .number").all_inner_texts()
    np.testing.assert_allclose(np.array(found, float), sorted(others, reverse=True)[:6], atol=6e-4)


def test_invented_words(page, server):
    words = ["bnak", "bankable", "苹果😀", "banker"]
    page.get_by_label("Other words, also invented ones").fill(" ".join(words))
    page.wait_for_selector("#characters tbody tr:nth-child(4)")
    until(page, lambda: "苹果😀" in page.locator("#characters tbody").inner_text())
    row = {"tokens": [*words, "bank"], "sequence_len": len(words) + 1}
    *vectors, bank = np.array(ask(server, "tokens", row)["word_emb"])
    expected = dict(zip(words, [cosine(vector, bank) for vector in vectors], strict=True))
    found = dict(
        zip(
            page.locator("#characters tbody th").all_inner_texts(),
            numbers(page, "#characters td.number").ravel(),
            strict=True,
        )
    )
    assert list(found) == sorted(words, key=expected.__getitem__, reverse=True)
    assert found == pytest.approx(expected, abs=6e-4)
    spelling = page.locator(".spelling")
    assert spelling.locator(".grapheme").all_inner_texts() == list("bank")
    assert "4 bytes" in spelling.inner_text()


def test_substitutes(page, server):
    page.wait_for_selector("#substitutes li")
    tokens = ask(server, "default", {"text": BANKS[0]})["tokens"]
    answer = ask(server, "substitutes", {"tokens": tokens, "sequence_len": 9, "position": 4})
    first = page.locator("#substitutes .columns > div").first
    assert first.locator(".what").all_inner_texts() == answer["words"][:8]
    np.testing.assert_allclose(
        shares(page, "#substitutes .columns > div:first-child .number"),
        np.exp(answer["log_probability"][:8]),
        rtol=0.06,
    )
    choose(page, 1, "river")
    answer = ask(server, "substitutes", {"tokens": tokens, "sequence_len": 9, "position": 7})
    until(page, lambda: first.locator(".what").all_inner_texts() == answer["words"][:8])


def test_examples_in_two_languages(page):
    page.get_by_role("button", name="苹果 (Chinese)").click()
    until(page, lambda: chosen(page) == ["苹果"] * 3)
    wait_until_shown(page)
    assert numbers(page, "#similarity td")[:, 0].tolist() == [1, 1, 1]
    note = page.locator("#language")
    assert "This model has read English only" in note.inner_text()
    assert "--model elmo_tiny_zh" in note.inner_text()
    page.get_by_role("button", name="can (English)").click()
    until(page, lambda: chosen(page) == ["can"] * 3)
    wait_until_settled(page)
    assert note.is_hidden()
    assert numbers(page, "#similarity td")[1, 2] > numbers(page, "#similarity td")[0, 2] + 0.2


def test_sentences_of_ones_own(page):
    for number in (3, 2):
        page.get_by_role("button", name=f"Remove sentence {number}").click()
    assert "Type a second sentence" in page.locator(".summary").inner_text()
    page.get_by_role("button", name="Add a sentence").click()
    page.keyboard.type("A new bank opened here.")
    page.wait_for_selector("#similarity td")
    # The word of the other sentence is looked for.
    assert chosen(page) == ["bank", "bank"]
    # It stays chosen where it goes, and another one is, where it is gone.
    type_sentence(page, 2, "Yesterday a new bank opened here.")
    assert page.locator("#editors li").nth(1).locator(":checked").get_attribute("value") == "3"
    type_sentence(page, 2, "Nothing")
    assert chosen(page) == ["bank", "Nothing"]
    page.get_by_label("Sentence 2", exact=True).fill("  ")
    until(page, lambda: "Type a second sentence" in page.locator(".summary").inner_text())


def test_the_address_keeps_sentences_and_words(page, open_page, server):
    type_sentence(page, 3, "The bank # & of 100 % + x.")
    choose(page, 1, "river")
    fragment = page.evaluate("location.hash")
    again = open_page(server.rest_address, fragment)
    wait_until_shown(again)
    fields = again.locator("#editors textarea")
    assert [fields.nth(k).input_value() for k in range(3)] == [
        *BANKS[:2],
        "The bank # & of 100 % + x.",
    ]
    assert chosen(again) == ["river", "bank", "bank"]
    # A link that is followed, or a step back, within the page.
    again.evaluate("location.hash = '#s=Two+banks.&w=1-2&s=A+bank.'")
    until(again, lambda: chosen(again) == ["banks", "bank"])
