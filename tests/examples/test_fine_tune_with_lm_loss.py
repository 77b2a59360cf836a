import fine_tune_with_lm_loss
import pytest


def test_smoke(smoke):
    result = smoke("fine_tune_with_lm_loss")
    assert (result["num_train"], result["num_test"]) == (6, 6)
    without, with_loss = result["runs"]
    assert [run["language_model_loss_weight"] for run in result["runs"]] == [0.0, 0.1]
    assert without["perplexity_before"] == pytest.approx(with_loss["perplexity_before"])
    # The biLM has been trained, and the weight of the loss makes a difference.
    found = [
        without["perplexity_before"],
        without["perplexity_after"],
        with_loss["perplexity_after"],
    ]
    assert len(set(found)) == 3


def test_the_general_text_is_thirty_different_sentences():
    sentences = fine_tune_with_lm_loss.GENERAL.splitlines()
    assert len(sentences) == len(set(sentences)) == 30
