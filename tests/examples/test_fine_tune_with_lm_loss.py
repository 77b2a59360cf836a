import fine_tune_with_lm_loss
import pytest


def test_smoke(smoke):
    result = smoke("fine_tune_with_lm_loss")
    assert (result["num_train"], result["num_test"]) == (6, 6)
    without, with_loss = result["runs"]
    assert [run["language_model_loss_weight"] for run in result["runs"]] == [0.0, 0.1]
    for kind in ("reviews", "general"):
        found = [run["perplexity"][kind] for run in (without, with_loss)]
        assert found[0]["before"] == pytest.approx(found[1]["before"])
        # The biLM has been trained, and the weight of the loss makes a difference.
        assert len({found[0]["before"], found[0]["after"], found[1]["after"]}) == 3
    # It keeps a model of the language that it is trained on.
    assert with_loss["perplexity"]["reviews"]["after"] < without["perplexity"]["reviews"]["after"]


def test_the_general_text_is_thirty_different_sentences():
    sentences = fine_tune_with_lm_loss.GENERAL.splitlines()
    assert len(sentences) == len(set(sentences)) == 30
