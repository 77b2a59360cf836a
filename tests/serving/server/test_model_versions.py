import gc
import shutil
import threading
import weakref

import grpc
import numpy as np
import pytest
from tensorflow_serving.apis import model_pb2

from keras_elmo.serving.server.model_version import ModelVersion
from keras_elmo.serving.server.model_versions import ModelVersions
from keras_elmo.serving.server.request_error import RequestError


def spec(version=None, name="tiny", label=None):
    made = model_pb2.ModelSpec(name=name)
    if version is not None:
        made.version.value = version
    if label is not None:
        made.version_label = label
    return made


@pytest.fixture
def said():
    return []


@pytest.fixture
def versions(model_dir, said):
    versions = ModelVersions(model_dir, said.append)
    yield versions
    versions.close()


def scale(versions, version=None):
    with versions.use(spec(version)) as (number, model):
        text = {"text": np.array([b"a"], object)}
        return number, float(model.predict("", text, ["default"])["default"][0, 1])


def states(versions, version=None):
    response = versions.status(spec(version))
    return [(entry.version, entry.state) for entry in response.model_version_status]


LOADING, AVAILABLE, UNLOADING, END = 20, 30, 40, 50


def look_twice(versions):
    versions.refresh()
    versions.refresh()


def test_the_newest_is_served(model_dir, other_model):
    shutil.copytree(other_model, model_dir / "10")
    versions = ModelVersions(model_dir)
    assert (versions.name, versions.current) == ("tiny", 10)
    assert scale(versions) == scale(versions, 10) == (10, 2.0)
    assert states(versions) == [(10, AVAILABLE)]
    versions.close()


def test_a_new_version_takes_over(versions, model_dir, other_model, said):
    assert scale(versions) == (1, 1.0)
    shutil.copytree(other_model, model_dir / "2")
    versions.refresh()
    # Somebody may still be writing.
    assert versions.current == 1
    versions.refresh()
    assert scale(versions) == (2, 2.0)
    assert states(versions) == [(2, AVAILABLE), (1, END)]
    assert states(versions, 1) == [(1, END)]
    assert said == ["Version 2 is served now; version 1 ends with its last request."]
    with pytest.raises(RequestError, match=r"Servable not found for request: Specific\(tiny, 1\)"):
        scale(versions, 1)


def test_the_old_one_ends_with_its_last_request(versions, model_dir, other_model):
    shutil.copytree(other_model, model_dir / "2")
    with versions.use(spec()) as (number, model):
        look_twice(versions)
        assert number == 1
        assert states(versions) == [(2, AVAILABLE), (1, UNLOADING)]
        outputs = model.predict("", {"text": np.array([b"a"], object)})
        np.testing.assert_array_equal(outputs["default"], [[1, 1]])
        with versions.use(spec()) as (newer, _):
            assert newer == 2
    assert states(versions) == [(2, AVAILABLE), (1, END)]
    with pytest.raises(RuntimeError, match="closed Session"):
        model.predict("", {"text": np.array([b"a"], object)})


def test_nothing_of_the_old_one_stays_in_memory(versions, model_dir, other_model):
    with versions.use(spec()) as (_, model):
        old = weakref.ref(model)
        graph = weakref.ref(model._session.graph)
    del model
    shutil.copytree(other_model, model_dir / "2")
    look_twice(versions)
    gc.collect()
    assert old() is None
    assert graph() is None


def test_a_version_that_does_not_load(versions, model_dir, saved_model, said):
    (model_dir / "2").mkdir()
    (model_dir / "2" / "saved_model.pb").write_bytes(b"nonsense")
    for _ in range(3):
        look_twice(versions)
    assert scale(versions) == (1, 1.0)
    (failed,) = versions.status(spec(2)).model_version_status
    assert failed.state == END
    assert failed.status.error_code != 0
    assert failed.status.error_message
    # Said once, for nothing changes.
    (sentence,) = said
    assert sentence.startswith(f"{model_dir}/2 does not load: ")
    assert sentence.endswith(" Version 1 stays.")
    # Mended, it is taken.
    shutil.rmtree(model_dir / "2")
    shutil.copytree(saved_model, model_dir / "2")
    look_twice(versions)
    assert scale(versions) == (2, 1.0)


def test_a_version_that_lacks_its_weights(versions, model_dir, saved_model, said):
    shutil.copytree(saved_model, model_dir / "2")
    (data,) = (model_dir / "2" / "variables").glob("*.data-*")
    data.write_bytes(data.read_bytes()[:2])
    look_twice(versions)
    assert versions.current == 1
    assert len(said) == 1


def test_a_version_that_is_still_written(versions, model_dir, saved_model):
    (model_dir / "2").mkdir()
    for number, path in enumerate(sorted(saved_model.rglob("*"))):
        if path.is_file():
            target = model_dir / "2" / path.relative_to(saved_model)
            target.parent.mkdir(exist_ok=True, parents=True)
            shutil.copy(path, target)
            (model_dir / "2" / "changes").write_text(str(number) * number)
            versions.refresh()
            assert versions.current == 1
            assert states(versions) == [(1, AVAILABLE)]
    versions.refresh()
    assert versions.current == 2


def test_back_to_an_older_version(versions, model_dir, other_model):
    shutil.copytree(other_model, model_dir / "2")
    look_twice(versions)
    shutil.rmtree(model_dir / "2")
    look_twice(versions)
    assert scale(versions) == (1, 1.0)
    assert states(versions) == [(2, END), (1, AVAILABLE)]


def test_all_folders_gone(versions, model_dir):
    shutil.rmtree(model_dir)
    look_twice(versions)
    assert scale(versions) == (1, 1.0)


def test_nothing_to_begin_with(model_dir):
    (model_dir / "2").mkdir()
    with pytest.raises(
        ValueError, match="tiny/2 cannot be served: .* Export it anew, or remove it."
    ):
        ModelVersions(model_dir)


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (spec(name="other"), "NOT_FOUND", "Servable not found for request: Latest(other)"),
        (spec(7), "NOT_FOUND", "Servable not found for request: Specific(tiny, 7)"),
        (spec(0), "NOT_FOUND", "Servable not found for request: Specific(tiny, 0)"),
        (spec(1, "other"), "NOT_FOUND", "Servable not found for request: Specific(other, 1)"),
        (spec(name=""), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (spec(label="x"), "INVALID_ARGUMENT", "Unrecognized servable version label: x"),
    ],
    ids=range(6),
)
def test_what_is_not_there(versions, asked, code, message):
    with pytest.raises(RequestError) as error, versions.use(asked):
        pass
    assert (error.value.code.name, error.value.message) == (code, message)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (spec(7), "Could not find version 7 of model tiny"),
        (spec(name="other"), "Could not find any versions of model other"),
    ],
    ids=range(2),
)
def test_what_has_no_status(versions, asked, message):
    with pytest.raises(RequestError) as error:
        versions.status(asked)
    assert (error.value.code, error.value.message) == (grpc.StatusCode.NOT_FOUND, message)


def test_a_closed_model(model_dir):
    versions = ModelVersions(model_dir)
    versions.close()
    with pytest.raises(RequestError, match="The model tiny is closed."):
        _ = versions.current


def test_watching(versions, model_dir, other_model, monkeypatch):
    loaded = threading.Event()
    monkeypatch.setattr(
        ModelVersions,
        "_retire",
        lambda self, old, real=ModelVersions._retire: (real(self, old), loaded.set()),
    )
    versions.watch(seconds=0.05)
    shutil.copytree(other_model, model_dir / "2")
    assert loaded.wait(120)
    assert scale(versions) == (2, 2.0)


def test_requests_while_versions_come(versions, model_dir, saved_model, other_model):
    """Eight threads ask without end while five versions take each other's place."""
    over = threading.Event()
    wrong = []

    def ask():
        try:
            while not over.is_set():
                number, found = scale(versions)
                if found != (1.0 if number % 2 else 2.0):
                    wrong.append((number, found))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(2, 7):
        shutil.copytree(saved_model if number % 2 else other_model, model_dir / str(number))
        look_twice(versions)
        assert versions.current == number
    over.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert states(versions) == [(6, AVAILABLE), *((n, END) for n in (5, 4, 3, 2, 1))]


def test_versions_hold_models(versions):
    with versions.use(spec()) as (_, model):
        assert isinstance(model, ModelVersion)
