"""Runs: what they leave behind, that they go on exactly, and what stops them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import paths
import pytest
import tensorflow as tf
from conftest_training import TINY, assert_same_state, state_of

from keras_elmo import BidirectionalLanguageModel, load_language_model, load_model
from keras_elmo.checkpoints import run_folder
from keras_elmo.corpus import TrainingStream
from keras_elmo.training import (
    OptimizerConfig,
    PretrainConfig,
    TrainingCorpus,
    evaluate,
    resume,
)
from keras_elmo.training.replicas import Replicas
from keras_elmo.training.run_files import RunFiles
from keras_elmo.training.starting_model import new_model
from keras_elmo.training.training_step import TrainingStep
from keras_elmo.vocabulary import Vocabulary


def entries(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]


def copied(run, tmp_path, keep_up_to=None):
    """A copy of a run, as if later checkpoints had not been written yet."""
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    for step in run_folder.checkpoint_steps(copy):
        if keep_up_to is not None and step > keep_up_to:
            shutil.rmtree(copy / "checkpoints" / str(step))
    return copy


def test_what_a_run_leaves_behind(straight, text):
    assert {entry.name for entry in straight.iterdir()} == {
        "run.json",
        "vocab.txt",
        "vocab.counts.tsv",
        "log.jsonl",
        "tensorboard",
        "checkpoints",
    }
    log = entries(straight)
    assert [entry["step"] for entry in log if "sampled_loss" in entry] == list(range(1, 11))
    assert [entry["step"] for entry in log if "validation" in entry] == [4, 8, 10]
    assert log[-1] == {"step": 10, "event": "end", "num_dropped": 0}
    assert not any("perplexity" in name for entry in log for name in entry)
    config = PretrainConfig.from_json(json.loads((straight / "run.json").read_text())["config"])
    assert config == TINY.changed(validate_every=4)


def test_last_and_best_checkpoints_are_kept(straight):
    best = state_of(straight / "checkpoints" / "10")[1]["best"]
    validations = {
        e["step"]: e["validation"]["perplexity"] for e in entries(straight) if "validation" in e
    }
    assert best["step"] == min(validations, key=validations.get)
    assert best["perplexity"] == validations[best["step"]]
    assert set(run_folder.checkpoint_steps(straight)) == {8, 10, best["step"]}


def test_curves_for_tensorboard(straight):
    (file,) = (straight / "tensorboard").iterdir()
    tags = {
        (value.tag, event.step)
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    }
    assert {("sampled_loss", 1), ("gradient_norm", 10), ("validation_perplexity", 8)} <= tags


def test_a_run_folder_is_a_model(straight, text):
    best = state_of(straight / "checkpoints" / "10")[1]["best"]["step"]
    model = load_language_model(straight)
    direct = BidirectionalLanguageModel.from_preset(straight / "checkpoints" / str(best))
    np.testing.assert_array_equal(model.softmax.kernel, direct.softmax.kernel)
    assert load_model(straight).trainable_bilm is False
    sentences = TrainingCorpus.of(text / "valid.txt").sentences()
    assert evaluate(model, sentences).perplexity == pytest.approx(
        next(
            e["validation"]["perplexity"]
            for e in entries(straight)
            if e["step"] == best and "validation" in e
        )
    )


def test_without_validation_the_last_checkpoint_counts(tmp_path):
    for step in (5, 20, 100):
        folder = tmp_path / "checkpoints" / str(step)
        folder.mkdir(parents=True)
        for name in ("config.json", "model.weights.h5"):
            (folder / name).touch()
        (folder / "progress.json").write_text('{"best": null}')
    (tmp_path / "checkpoints" / "120").mkdir()  # half of one
    assert run_folder.best_checkpoint(tmp_path).name == "100"
    (tmp_path / "checkpoints" / "100" / "progress.json").write_text('{"best": {"step": 20}}')
    assert run_folder.best_checkpoint(tmp_path).name == "20"


def test_a_run_without_checkpoint_is_no_model(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        load_model(tmp_path)
    with pytest.raises(ValueError, match="has no whole checkpoint. Start it anew"):
        RunFiles(tmp_path).last_step()


def test_the_same_run_again_is_the_same(straight, train, text, tmp_path):
    config = TINY.changed(validate_every=4)
    train(tmp_path / "run", config, validation=TrainingCorpus.of(text / "valid.txt"))
    assert_same_state(tmp_path / "run" / "checkpoints" / "10", straight / "checkpoints" / "10")


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from conftest_training import TINY
from keras_elmo.training import TrainingCorpus, pretrain
def report(progress):
    if progress.step == 7:
        os.kill(os.getpid(), signal.SIGKILL)
pretrain(TINY.changed(validate_every=4), TrainingCorpus.of({text!r} + "/train.txt"), {text!r} + "/vocab.txt",
         {output!r}, TrainingCorpus.of({text!r} + "/valid.txt"), report=report)
"""


def test_ten_steps_are_five_a_kill_and_five(straight, text, tmp_path):
    output = tmp_path / "run"
    code = KILLED.format(tests=str(Path(__file__).parent), text=str(text), output=str(output))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert run_folder.checkpoint_steps(output)[-1] == 5
    assert entries(output)[-1]["step"] == 7
    (output / "checkpoints" / ".6.x.part").mkdir()
    said = []
    assert resume(output, say=said.append).step == 10
    assert said[0] == "Going on from step 5."
    assert_same_state(output / "checkpoints" / "10", straight / "checkpoints" / "10")
    assert not list((output / "checkpoints").glob(".*"))
    timeless = [{**e, "tokens_per_second": 0} for e in entries(output)]
    assert timeless == [{**e, "tokens_per_second": 0} for e in entries(straight)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_writes_a_checkpoint_first(straight, train, text, tmp_path, number):
    def report(progress):
        if progress.step == 3:
            os.kill(os.getpid(), number)

    output = tmp_path / "run"
    config = TINY.changed(validate_every=4)
    before = signal.getsignal(number)
    validation = TrainingCorpus.of(text / "valid.txt")
    result = train(output, config, validation=validation, report=report)
    assert (result.step, result.stopped_by) == (3, number)
    assert signal.getsignal(number) == before
    assert run_folder.checkpoint_steps(output) == [0, 3]
    assert resume(output).step == 10
    assert_same_state(output / "checkpoints" / "10", straight / "checkpoints" / "10")


def test_a_validation_that_was_broken_off_is_made_up_for(
    straight, train, text, tmp_path, monkeypatch
):
    from keras_elmo.training import training_corpus

    read = training_corpus.read_sentences

    def interrupted(files, format):
        for place, sentence in enumerate(read(files, format)):
            if place == 3 and "valid" in str(files[0]):
                os.kill(os.getpid(), signal.SIGTERM)
            yield sentence

    output = tmp_path / "run"
    validation = TrainingCorpus.of(text / "valid.txt")
    with monkeypatch.context() as patch:
        patch.setattr(training_corpus, "read_sentences", interrupted)
        result = train(output, TINY.changed(validate_every=4), validation=validation)
    assert (result.step, result.stopped_by, result.best) == (4, signal.SIGTERM, None)
    assert resume(output).best is not None
    assert_same_state(output / "checkpoints" / "10", straight / "checkpoints" / "10")


def test_a_finished_run_has_nothing_to_go_on_with(straight, tmp_path):
    copy = copied(straight, tmp_path)
    assert resume(copy).step == 10
    assert_same_state(copy / "checkpoints" / "10", straight / "checkpoints" / "10")


def test_a_longer_run_and_other_output_are_allowed(straight, text, tmp_path):
    copy = copied(straight, tmp_path)
    config = TINY.changed(validate_every=50, max_steps=12, keep_checkpoints=1, save_every=11)
    moved = Path(shutil.copy(text / "train.txt", tmp_path / "train.txt"))
    result = resume(copy, config, TrainingCorpus.of(moved), text / "vocab.txt")
    assert result.step == 12
    assert result.best["step"] in run_folder.checkpoint_steps(copy)
    assert 12 in run_folder.checkpoint_steps(copy)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"units": 7}, "`units` must be that of the run, 6: a run that goes on may change only"),
        ({"seed": 4}, "`seed` must be that of the run, 3"),
        (
            {"network_optimizer": OptimizerConfig("sgd", 1.0)},
            "`network_optimizer` must be that of the run",
        ),
    ],
)
def test_nothing_else_may_change(straight, changes, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        resume(straight, TINY.changed(validate_every=4, **changes))


def test_another_vocabulary_cannot_go_on(straight, text, tmp_path):
    words = list(Vocabulary.load(text / "vocab.txt"))
    other = tmp_path / "other.txt"
    Vocabulary([*words, "more"]).save(other)
    sentence = f"of {len(words)} words. Received: {len(words) + 1} words"
    with pytest.raises(ValueError, match=sentence):
        resume(straight, vocabulary_file=other)
    Vocabulary([*words[:-2], words[-1], words[-2]]).save(other)
    with pytest.raises(ValueError, match="word for word: SHA-256 .* in another order, SHA-256"):
        resume(straight, vocabulary_file=other)


def test_another_corpus_cannot_go_on(straight, text):
    with pytest.raises(ValueError, match="The corpus must be the one that the position is in"):
        resume(straight, corpus=TrainingCorpus.of(text / "valid.txt"))


def test_damaged_runs(straight, tmp_path):
    with pytest.raises(ValueError, match="must be the folder of a pre-training run to go on with"):
        resume(tmp_path)
    copy = copied(straight, tmp_path)
    state = copy / "checkpoints" / "10" / "training_state.h5"
    state.write_bytes(b"no HDF5")
    with pytest.raises(ValueError, match="training_state.h5 is missing or damaged"):
        resume(copy)
    import h5py

    with h5py.File(state, "w") as file:
        file.create_dataset("states/0/0/0", data=np.zeros(3))
    with pytest.raises(ValueError, match="does not fit the run's configuration: `slots/.*nothing"):
        resume(copy)
    run = json.loads((copy / "run.json").read_text())
    run["config"]["units"] = 60
    (copy / "run.json").write_text(json.dumps(run))
    with pytest.raises(ValueError, match="in which `units` is 60. Received: 6"):
        resume(copy)
    run["config"]["units"] = "many"
    (copy / "run.json").write_text(json.dumps(run))
    with pytest.raises(ValueError, match="copy: `units` must be an integer"):
        resume(copy)


def test_an_existing_folder_is_left_alone(straight, train):
    with pytest.raises(ValueError, match="exists already. Go on with that run by --resume, or"):
        train(straight)


def test_a_loss_that_is_no_number_stops_with_the_step(train, tmp_path):
    # At this rate the weights overflow in the first update.
    sgd = OptimizerConfig("sgd", 1e38)
    config = TINY.changed(
        network_optimizer=sgd,
        softmax_optimizer=sgd,
        warmup_steps=0,
        clip_norm=None,
        scale_loss=True,
    )
    sentence = r"at step [23] the loss is nan.* The checkpoint of step 0 is intact"
    with pytest.raises(ValueError, match=sentence):
        train(tmp_path / "run", config)
    assert run_folder.checkpoint_steps(tmp_path / "run") == [0]
    arrays, _ = state_of(tmp_path / "run" / "checkpoints" / "0")
    assert all(np.isfinite(array).all() for array in arrays.values())


def test_weights_that_are_no_numbers_are_never_kept(train, tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingStep, "is_finite", lambda step: False)
    sentence = "some weights are not after step 5. The checkpoint of step 0 is intact"
    with pytest.raises(ValueError, match=sentence):
        train(tmp_path / "run")
    assert run_folder.checkpoint_steps(tmp_path / "run") == [0]


def test_what_is_finite(text):
    vocabulary = Vocabulary.load(text / "vocab.txt")
    model = new_model(TINY, vocabulary, np.ones(len(vocabulary)))
    step = TrainingStep(model, TINY)
    assert step.is_finite()
    bias = model.softmax.bias
    bias.assign(np.where(np.arange(len(vocabulary)) == 3, np.inf, bias.numpy()))
    assert not step.is_finite()


def test_text_that_is_bad_later_on_loses_no_step(train, tmp_path, monkeypatch):
    draw = TrainingStream.__next__
    drawn = []

    def broken(self):
        drawn.append(None)
        if len(drawn) == 5:
            raise ValueError("corpus.txt, line 9: no UTF-8")
        return draw(self)

    monkeypatch.setattr(TrainingStream, "__next__", broken)
    with pytest.raises(ValueError, match="line 9"):
        train(tmp_path / "run")
    # One of the five only handed out the batch that was drawn ahead.
    assert run_folder.checkpoint_steps(tmp_path / "run") == [0, 3]


def test_a_folder_that_cannot_be_replaced_is_filled(train, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    train(tmp_path / "link", TINY.changed(max_steps=1))
    assert (tmp_path / "link").is_symlink()
    assert run_folder.checkpoint_steps(tmp_path / "disk") == [0, 1]
    assert not list((tmp_path / "disk").glob(".*"))


def test_one_process_at_a_time(straight, tmp_path):
    run = copied(straight, tmp_path)
    sentence = "must not be trained by two at once, but another process is at it"
    with RunFiles(run).locked(), pytest.raises(ValueError, match=sentence):
        resume(run)
    resume(run)


def test_steps_that_are_behind(straight, tmp_path):
    said = []
    before = PretrainConfig.from_json(RunFiles(straight).read_run()["config"])
    resume(copied(straight, tmp_path), before.changed(max_steps=3), say=said.append)
    assert "The run is at step 10 already: 3 steps are no more." in said


def test_a_full_disk_loses_no_checkpoint(train, tmp_path, monkeypatch):
    save = BidirectionalLanguageModel.save_to_preset

    def full(self, folder, *args, **kwargs):
        save(self, folder, *args, **kwargs)
        if Path(folder).name == "10":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(BidirectionalLanguageModel, "save_to_preset", full)
    with pytest.raises(OSError, match="checkpoint of step 10 could not be written .*No space left"):
        train(tmp_path / "run")
    assert run_folder.checkpoint_steps(tmp_path / "run") == [0, 5]
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))


def test_epochs_of_the_real_data(train, tmp_path):
    corpus = tmp_path / "three.txt"
    corpus.write_text("the cat sat\nthe cat\na\n")  # 4 + 3 + 2 predictions
    config = TINY.changed(
        max_steps=None,
        num_epochs=2,
        batch_size=1,
        unroll_steps=3,
        num_train_tokens=768_648_884,
        num_negative_samples=10_000,
    )
    said = []
    seen = []
    result = train(tmp_path / "run", config, corpus, say=said.append, report=seen.append)
    assert (result.step, result.epoch) == (6, 2)
    assert {progress.total_steps for progress in seen} == {6}
    assert {progress.loss_name for progress in seen} == {"loss"}
    assert (
        "The corpus has 9 predictions per direction, not 768,648,884 (`num_train_tokens`)"
        in " ".join(said)
    )
    full = [sentence for sentence in said if "in full" in sentence]
    assert full == [
        "The softmax is computed in full: 10,000 negatives would be (nearly) all of the 16 words."
    ]


def test_what_fills_no_batch_is_counted(train, tmp_path):
    corpus = tmp_path / "three.txt"
    corpus.write_text("the cat sat\nthe cat\na\n")
    config = TINY.changed(max_steps=None, batch_size=1, unroll_steps=4)
    said = []
    train(tmp_path / "run", config, corpus, say=said.append)
    assert entries(tmp_path / "run")[-1] == {"step": 2, "event": "end", "num_dropped": 1}
    assert "The last 1 predictions per direction fill no whole batch: dropped." in said


def test_a_run_shorter_than_a_batch(train, tmp_path):
    corpus = tmp_path / "one.txt"
    corpus.write_text("cat\n")
    with pytest.raises(ValueError, match="The run is shorter than one batch of 3 rows of 4 steps"):
        train(tmp_path / "run", TINY.changed(max_steps=None), corpus)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "The corpus must have at least one word"), (b"a\n\xff\n", "line 2")],
)
def test_bad_text_is_found_before_the_first_step(train, tmp_path, content, sentence):
    corpus = tmp_path / "bad.txt"
    corpus.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        train(tmp_path / "run", TINY.changed(max_steps=None), corpus)
    assert not (tmp_path / "run").exists()


def test_what_a_killed_start_left_is_no_obstacle(train, tmp_path):
    """Its half-made folder, and what of it had its name already; but not what somebody else has put there."""
    output = tmp_path / "run"
    for folder in (".run.abc.part", "checkpoints/0", "lost+found"):
        (output / folder).mkdir(parents=True)
    (output / "vocab.txt").touch()
    (output / "mine.txt").touch()
    with pytest.raises(ValueError, match="exists already. Give another folder."):
        train(output)
    (output / "mine.txt").unlink()
    assert train(output, TINY.changed(max_steps=1)).step == 1
    with pytest.raises(
        ValueError, match="exists already. Go on with that run by --resume, or give"
    ):
        train(output)


def test_a_write_that_fails_in_the_first_process(monkeypatch):
    """Of several it is an error in all; the others raise one of their own."""
    replicas = Replicas(tf.distribute.get_strategy())
    with pytest.raises(OSError, match="No space"):
        replicas.by_chief(lambda: (_ for _ in ()).throw(OSError("No space")))
    monkeypatch.setattr(replicas, "is_chief", False)
    monkeypatch.setattr(replicas, "maximum", lambda value: 1)
    with pytest.raises(OSError, match="The first process of the run failed: it says why"):
        replicas.by_chief(lambda: None)


def test_empty_validation_text_is_found_before_the_first_step(train, tmp_path):
    (tmp_path / "empty.txt").touch()
    with pytest.raises(ValueError, match="The validation text must have at least one line"):
        train(tmp_path / "run", validation=TrainingCorpus.of(tmp_path / "empty.txt"))


def test_an_unsorted_vocabulary_is_reported(train, text, tmp_path):
    words = list(Vocabulary.load(text / "vocab.txt"))
    corpus = tmp_path / "rising.txt"
    lines = [" ".join([word] * (2 * n + 1)) for n, word in enumerate(words[3:])]
    corpus.write_text("\n".join(lines) + "\n", encoding="utf-8")
    Vocabulary(words).save(tmp_path / "vocab.txt")
    said = []
    config = TINY.changed(max_steps=1)
    train(tmp_path / "run", config, corpus, vocabulary_file=tmp_path / "vocab.txt", say=said.append)
    assert any("not in the order of falling frequency" in sentence for sentence in said)


def test_training_on_from_a_model(straight, train, text, tmp_path):
    said = []
    config = TINY.changed(units=99, max_steps=1, network_optimizer=OptimizerConfig("sgd", 1e-9))
    train(tmp_path / "same", config, start_from=straight, say=said.append)
    source, first = (
        load_language_model(straight),
        load_language_model(tmp_path / "same" / "checkpoints" / "0"),
    )
    np.testing.assert_array_equal(first.softmax.kernel, source.softmax.kernel)
    np.testing.assert_array_equal(*(m.elmo_model.bilm.weights[0] for m in (first, source)))
    assert not said

    words = list(Vocabulary.load(text / "vocab.txt"))
    # In another order, too, and without one of them.
    Vocabulary([*words[:3], "new", *words[:3:-1], "newer"]).save(tmp_path / "larger.txt")
    larger = {"vocabulary_file": tmp_path / "larger.txt", "start_from": straight}
    sentence = (
        f"of {len(words)} words. Received: {len(words) + 1} words. Take that one .*, or let the"
    )
    with pytest.raises(ValueError, match=sentence):
        train(tmp_path / "other", config, **larger)
    assert not (tmp_path / "other").exists()
    train(tmp_path / "other", config, **larger, new_vocabulary=True, say=said.append)
    assert said[-1] == (
        f"The vocabulary is new: the softmax keeps {len(words) - 1} of its {len(words) + 1} words, the others start "
        "anew."
    )
    first = load_language_model(tmp_path / "other" / "checkpoints" / "0")
    for name in ("kernel", "bias"):
        rows, before = (
            dict(zip(m.vocabulary, getattr(m.softmax, name).numpy(), strict=True))
            for m in (first, source)
        )
        assert rows.keys() - before.keys() == {"new", "newer"}
        for word in rows.keys() & before.keys():
            np.testing.assert_array_equal(rows[word], before[word])
    np.testing.assert_array_equal(*(m.elmo_model.bilm.weights[0] for m in (first, source)))


def test_training_on_from_vectors_alone(straight, train, tmp_path):
    best = Path(shutil.copytree(run_folder.best_checkpoint(straight), tmp_path / "vectors"))
    (best / "language_model.weights.h5").unlink()
    said = []
    train(tmp_path / "run", TINY.changed(max_steps=1), start_from=best, say=said.append)
    assert f"{best} has no softmax: it starts anew." in said


def test_training_on_from_a_checkpoint_of_bilm_tf(text, train, tmp_path):
    """With its softmax, if the vocabulary has as many words; it does not say which."""
    source = paths.DATA / "bilm_checkpoints" / "two_layers"
    words = list(Vocabulary.load(text / "vocab.txt"))
    said = []
    config = TINY.changed(max_steps=1)
    with pytest.raises(ValueError, match=f"of 12 words. Received: {len(words)} words. Take that"):
        train(tmp_path / "run", config, start_from=source)
    Vocabulary(words[:12]).save(tmp_path / "vocab.txt")
    train(
        tmp_path / "run",
        config,
        start_from=source,
        vocabulary_file=tmp_path / "vocab.txt",
        say=said.append,
    )
    assert not any("anew" in sentence for sentence in said)
    first = load_language_model(tmp_path / "run" / "checkpoints" / "0")
    given = np.load(source / "expected.npz")
    np.testing.assert_array_equal(first.softmax.kernel, given["weights/softmax/W"])
    assert first.elmo_model.units == 6
    train(tmp_path / "new", config, start_from=source, new_vocabulary=True, say=said.append)
    assert f"{source} has no vocabulary to tell what its softmax predicts: it starts anew." in said


def test_a_new_vocabulary_needs_a_model(train, tmp_path):
    with pytest.raises(ValueError, match="--new-vocabulary must come with --from MODEL"):
        train(tmp_path / "run", new_vocabulary=True)


def test_words_without_characters(train, tmp_path):
    config = TINY.changed(use_characters=False, max_steps=2)
    train(tmp_path / "run", config)
    model = load_language_model(tmp_path / "run")
    assert model.elmo_model.vocabulary_size == len(model.vocabulary)
    with pytest.raises(ValueError, match="so that there is no new one for it"):
        train(tmp_path / "other", config, start_from=tmp_path / "run", new_vocabulary=True)


def test_mixed_precision_goes_on_exactly_too(train, tmp_path):
    config = TINY.changed(precision="mixed_bfloat16", max_steps=4, save_every=2)
    train(tmp_path / "run", config)
    copy = copied(tmp_path / "run", tmp_path, keep_up_to=2)
    resume(copy)
    assert_same_state(copy / "checkpoints" / "4", tmp_path / "run" / "checkpoints" / "4")
    assert load_model(copy).dtype_policy.name == "float32"


def test_plain_text_is_cut_by_us(train, tmp_path):
    corpus = tmp_path / "plain.txt"
    corpus.write_text("The cat sat. It didn't run.\n" * 20)
    from keras_elmo.training import pretrain

    vocabulary = tmp_path / "vocab.txt"
    Vocabulary(["<S>", "</S>", "<UNK>", ".", "cat", "n't"]).save(vocabulary)
    config = TINY.changed(max_steps=2)
    text = TrainingCorpus.of(corpus, "plain")
    pretrain(config, text, vocabulary, tmp_path / "run", validation=text)
    counts = (tmp_path / "run" / "vocab.counts.tsv").read_text().split("\n")
    assert counts[5] == "20\tn't"
    metadata = json.loads((tmp_path / "run" / "checkpoints" / "2" / "metadata.json").read_text())
    assert metadata["tokenizer"] == "word"
    with pytest.raises(ValueError, match='`format` must be one of "tokens", "plain"'):
        TrainingCorpus.of(corpus, "conllu")


def test_a_uniform_model_has_the_perplexity_of_its_vocabulary(straight, text):
    model = load_language_model(straight)
    for weight in model.softmax.weights:
        weight.assign(np.zeros(weight.shape))
    result = evaluate(model, TrainingCorpus.of(text / "valid.txt").sentences())
    assert list(result[:3]) == pytest.approx([len(model.vocabulary)] * 3)


def test_the_loss_falls(train, text, tmp_path):
    corpus = tmp_path / "easy.txt"
    corpus.write_text("the cat sat on a mat .\n" * 50)
    seen = []
    config = TINY.changed(
        max_steps=60,
        dropout=0.0,
        save_every=100,
        num_negative_samples=None,
        network_optimizer=OptimizerConfig("adam", 0.03, epsilon=1e-8),
    )
    train(tmp_path / "run", config, corpus, report=seen.append)
    losses = [progress.loss for progress in seen]
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])


def test_the_same_model_trains_by_fit(straight, text):
    from keras_elmo.corpus import SentenceStream, TrainingStream

    model = load_language_model(straight, trainable_bilm=True)
    stream = TrainingStream(SentenceStream(text / "train.txt"), model.vocabulary, 3, 4, 8)
    batch = model.inputs_of(next(stream))
    model.compile("adam", run_eagerly=True)
    before = model.elmo_model.bilm.weights[0].numpy()
    history = model.fit(
        ((batch, None) for _ in range(3)), steps_per_epoch=3, shuffle=False, verbose=0
    )
    assert np.isfinite(history.history["loss"]).all()
    assert (model.elmo_model.bilm.weights[0].numpy() != before).any()
