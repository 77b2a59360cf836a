import keras
import pytest

from keras_elmo import ElmoModel


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a small preset."""
    keras.utils.set_random_seed(1)
    folder = tmp_path_factory.mktemp("preset") / "tiny"
    ElmoModel(
        units=8, projection_dim=4, filters=[[1, 4], [2, 4]], num_highway_layers=0
    ).save_to_preset(folder)
    return str(folder)
