"""The page with a classifier, with a server that stops, and with models of which only the answers are real."""

import json

import keras
import numpy as np
import pytest
from live_page import screenshot, until
from ports import free_ports

from keras_elmo import ElmoModel, TextClassifier
from keras_elmo.export import export_saved_model
from keras_elmo.serving.server import LocalServer


@pytest.fixture(scope="module")
def classifier(browser, tmp_path_factory):
    """The folder of a text classifier."""
    keras.utils.set_random_seed(1)
    elmo = ElmoModel(8, 4, filters=[[1, 4]], num_highway_layers=0)
    folder = tmp_path_factory.mktemp("served") / "films"
    export_saved_model(TextClassifier(labels=["bad", "good"], model_or_preset=elmo), folder)
    return folder


def test_a_classifier_and_a_server_that_stops(classifier, open_page):
    (port,) = free_ports(1)
    with LocalServer(classifier, port, 0) as server:
        page = open_page(server.rest_address)
        until(page, lambda: page.locator("#prediction li").count() == 6)
        assert page.locator("#prediction h3").all_inner_texts() == [
            f"Sentence {k}" for k in (1, 2, 3)
        ]
        shares = [
            float(text.split()[0]) for text in page.locator("#prediction .number").all_inner_texts()
        ]
        np.testing.assert_allclose(np.reshape(shares, (3, 2)).sum(axis=1), 100, atol=1.1)
        assert page.locator("#said").text_content().startswith("Sentence 1: ")
        for nothing in ("#similarity", "#mixer", "#map", "#nearest", "#substitutes", "#characters"):
            assert page.locator(nothing).is_hidden()
        screenshot(page, "classifier")
    lost = page.get_by_role("alert").filter(has_text="The server does not answer")
    until(page, lambda: lost.is_visible())
    field = page.get_by_label("Sentence 1", exact=True)
    field.fill("Typed while the server was away.")
    screenshot(page, "server_away")
    with LocalServer(classifier, port, 0):
        until(page, lambda: lost.is_hidden())
        until(page, lambda: page.locator(".stale:visible").count() == 0)
        assert field.input_value() == "Typed while the server was away."
        assert page.locator("#prediction li").count() == 6
        # The browser itself notes every request that got no answer.
        page.forget_errors()


# --- Answers as other models give them ---


def infos(**shapes):
    """Inputs or outputs of a signature, as the metadata has them."""
    return {
        name: {
            "dtype": "DT_STRING" if kind is str else "DT_FLOAT" if kind is float else "DT_INT32",
            "tensor_shape": {"dim": [{"size": "-1"}] * rank},
        }
        for name, (kind, rank) in shapes.items()
    }


def answering(inputs, outputs, predict, signature="default"):
    """Lets a model answer in the place of the server's own; `predict` takes a row."""
    signatures = {signature: {"inputs": infos(**inputs), "outputs": infos(**outputs)}}
    order = {signature: {"inputs": list(inputs)}}

    def answer(route):
        url = route.request.url
        if url.endswith("/page/model.json"):
            body = {"name": "other", "description": {"signatures": order}}
        elif url.endswith("/metadata"):
            body = {"metadata": {"signature_def": {"signature_def": signatures}}}
        elif url.endswith(":predict"):
            (row,) = json.loads(route.request.post_data)["instances"]
            answer = predict(row)
            if isinstance(answer, str):
                return route.fulfill(status=400, json={"error": answer})
            body = {"predictions": [answer]}
        else:
            body = {"model_version_status": [{"version": "1", "state": "AVAILABLE"}]}
        return route.fulfill(json=body)

    def prepare(page):
        page.route("**/page/model.json", answer)
        page.route("**/v1/**", answer)

    return prepare


@pytest.fixture
def address(server):
    """Where the page's files are."""
    return server.rest_address


TAGS = {"tokens": (str, 2), "label": (str, 2), "probabilities": (float, 3)}


def test_a_tagger(open_page, address):
    def predict(row):
        tokens = row["text"].split()
        return {
            "tokens": [*tokens, ""],
            "label": ["B-LOC" if token == "bank" else "O" for token in tokens] + [""],
        }

    page = open_page(address, prepare=answering({"text": (str, 1)}, TAGS, predict))
    until(page, lambda: page.locator("#prediction .tagged").count() == 3)
    assert page.locator("#prediction .inside").all_inner_texts() == ["bank\nB-LOC"] * 3
    assert page.locator("#said").text_content() == "; ".join(
        f"Sentence {k}: bank B-LOC" for k in (1, 2, 3)
    )
    screenshot(page, "tagger")


def test_a_labeller_of_semantic_roles(open_page, address):
    def predict(row):
        tokens = row["text"].split()
        return {
            "tokens": tokens,
            "label": ["B-V" if k == row["predicate"] else "O" for k in range(len(tokens))],
        }

    inputs = {"text": (str, 1), "predicate": (int, 1)}
    page = open_page(address, prepare=answering(inputs, TAGS, predict))
    words = page.get_by_role("group", name="Word of sentence 2")
    words.get_by_role("radio", name="lent").click()
    until(
        page,
        lambda: (
            page.locator("#prediction .tagged").nth(1).locator(".inside").inner_text()
            == "lent\nB-V"
        ),
    )


def test_a_classifier_of_pairs(open_page, address):
    def predict(row):
        same = float(row["premise"] == row["hypothesis"])
        return {
            "label": "yes" if same else "no",
            "labels": ["yes", "no"],
            "probabilities": [same, 1 - same],
        }

    inputs = {"premise": (str, 1), "hypothesis": (str, 1)}
    outputs = {"label": (str, 1), "labels": (str, 2), "probabilities": (float, 2)}
    page = open_page(address, prepare=answering(inputs, outputs, predict))
    first = page.locator("#prediction li").first
    until(page, lambda: first.is_visible() and first.inner_text().split() == ["no", "100", "%"])
    premise = page.get_by_label("Premise", exact=True).input_value()
    page.get_by_label("Hypothesis", exact=True).fill(premise)
    until(page, lambda: first.inner_text().split() == ["yes", "100", "%"])
    assert page.get_by_role("button", name="Add a sentence").count() == 0


def test_an_output_of_another_kind(open_page, address):
    page = open_page(
        address, prepare=answering({"text": (str, 1)}, {"score": (float, 1)}, lambda row: 0.25)
    )
    until(page, lambda: page.locator("#prediction dl").count() == 3)
    assert page.locator("#prediction dl").first.inner_text().split() == ["score", "0.250"]


def test_a_sentence_that_the_model_refuses(open_page, address):
    def predict(row):
        return "too strange" if "river" in row["text"] else 0.5

    page = open_page(address, prepare=answering({"text": (str, 1)}, {"score": (float, 1)}, predict))
    error = page.locator("#editors .error:visible")
    until(page, lambda: error.count() == 1)
    assert error.inner_text() == "The model refused this sentence: too strange"
    assert page.get_by_label("Sentence 1", exact=True).get_attribute("aria-invalid") == "true"
    page.get_by_label("Sentence 1", exact=True).fill("He sat on the bank.")
    until(page, lambda: error.count() == 0)
    page.forget_errors()


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (
            {"text": (str, 1)},
            {"elmo": (float, 3), "sequence_len": (int, 1)},
            "The model other serves elmo, sequence_len, but comparing layers takes tokens, word_emb, lstm_outputs1, …: "
            "export it without --outputs.",
        ),
        (
            {"x": (float, 2)},
            {"y": (float, 2)},
            "The page asks models that take plain strings, but other takes x: use its REST interface.",
        ),
    ],
)
def test_models_that_the_page_is_not_for(open_page, address, inputs, outputs, message):
    page = open_page(address, prepare=answering(inputs, outputs, lambda row: {}, "serving_default"))
    until(page, lambda: page.locator("#unfit").is_visible())
    assert page.locator("#unfit").inner_text() == message
