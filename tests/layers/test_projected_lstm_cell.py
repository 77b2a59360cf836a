"""ProjectedLSTMCell: the harness, and the oracle step by step and under `keras.layers.RNN`."""

import harness
import keras
import numpy as np
import pytest
import reference

from keras_elmo.layers import ProjectedLSTMCell


@pytest.mark.parametrize("projection_dim", [None, 4])
def test_harness(projection_dim):
    random = np.random.default_rng(0)
    sizes = (5, projection_dim or 6, 6)  # input, output, memory
    inputs = [random.normal(size=(3, size)).astype("float32") for size in sizes]
    harness.check_layer(
        ProjectedLSTMCell,
        {"units": 6, "projection_dim": projection_dim, "cell_clip": 3.0, "projection_clip": 2.5},
        inputs,
        num_weights=3 if projection_dim is None else 4,
        call=lambda cell, inputs, mask: cell(inputs[0], inputs[1:]),
        input_shape=(None, 5),
    )


CLIPS = [(None, None), (0.3, None), (None, 0.2), (0.4, 0.3)]


@pytest.mark.parametrize(("cell_clip", "projection_clip"), CLIPS)
@pytest.mark.parametrize("projection_dim", [None, 4])
def test_oracle(projection_dim, cell_clip, projection_clip):
    units, input_dim, batch, steps = 6, 5, 3, 7
    random = np.random.default_rng(2)
    output_dim = projection_dim or units
    kernel = random.normal(0, 0.4, (input_dim + output_dim, 4 * units))
    bias = random.normal(size=4 * units)
    projection = None if projection_dim is None else random.normal(size=(units, projection_dim))
    cell = ProjectedLSTMCell(units, projection_dim, cell_clip, projection_clip)
    cell.build((None, input_dim))
    weights = [kernel[:input_dim], kernel[input_dim:], bias]
    cell.set_weights(weights + ([] if projection is None else [projection]))
    x = random.normal(size=(batch, steps, input_dim))
    memory = random.normal(size=(batch, units))
    output = random.normal(size=(batch, output_dim))

    def oracle(cell_clip=cell_clip, projection_clip=projection_clip):
        clips = (cell_clip, projection_clip)
        # The oracle reads the width of the output off its input: any width of input goes this way.
        return [
            _lstm(x[i], kernel, bias, projection, clips, memory[i], output[i]) for i in (0, 1, 2)
        ]

    expected = oracle()
    rnn = keras.layers.RNN(cell, return_sequences=True, return_state=True)
    state = [output.astype("float32"), memory.astype("float32")]
    outputs, *final = rnn(x.astype("float32"), initial_state=state)
    harness.close(outputs, np.stack([one[0] for one in expected]))
    harness.close(final[0], np.stack([one[0][-1] for one in expected]))
    harness.close(final[1], np.stack([one[1] for one in expected]))
    for step in range(steps):
        out, state = cell(x[:, step].astype("float32"), state)
        harness.close(out, np.stack([one[0][step] for one in expected]))
    # The clips of this test do bite; without a projection `projection_clip` does nothing.
    for name, clip in (("cell_clip", cell_clip), ("projection_clip", projection_clip)):
        if clip is not None:
            distance = np.abs(oracle(**{name: None})[0][0] - expected[0][0]).max()
            assert (distance > 0.01) == (name == "cell_clip" or projection is not None)


def _lstm(x, kernel, bias, projection, clips, memory, output):
    """The oracle's layer with inputs of any width: their part is put into the bias of the step."""
    outputs = []
    input_dim, output_dim = x.shape[1], len(output)
    for row in x:
        # One step over an empty input of the output's width.
        step, (memory, output) = reference.lstm_layer(
            np.zeros((1, output_dim)),
            np.concatenate([np.zeros((output_dim, len(bias))), kernel[input_dim:]]),
            bias + row @ kernel[:input_dim],
            projection,
            *clips,
            (memory, output),
        )
        outputs.append(step[0])
    return np.array(outputs), memory


def test_forget_bias_is_added_and_not_stored():
    cell = ProjectedLSTMCell(2)
    cell.build((None, 3))
    harness.close(cell.bias, np.zeros(8))
    _, (_, memory) = cell(
        np.zeros((1, 3), "float32"), [np.zeros((1, 2), "float32"), np.ones((1, 2), "float32")]
    )
    harness.close(memory, np.full((1, 2), reference.sigmoid(1.0)))


def test_large_inputs_do_not_overflow():
    cell = ProjectedLSTMCell(4, 3, cell_clip=3.0, projection_clip=3.0)
    x = np.full((2, 5, 3), 1e4, "float32")
    output = harness.to_numpy(keras.layers.RNN(cell)(x))
    assert np.isfinite(output).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"units": 0}, "`units` must be a positive integer. Received: units=0"),
        ({"units": 1.5}, "`units` must be a positive integer. Received: units=1.5"),
        ({"projection_dim": 0}, "`projection_dim` must be a positive integer. Received: .*=0"),
        ({"cell_clip": 0}, "`cell_clip` must be a positive number, or None .*cell_clip=0"),
        ({"cell_clip": float("nan")}, "`cell_clip` must be a positive number, or None .*=nan"),
        ({"cell_clip": True}, "`cell_clip` must be a positive number, or None .*=True"),
        ({"projection_clip": -1.0}, "`projection_clip` must be a positive number, or None .*=-1.0"),
        ({"projection_clip": "3"}, "`projection_clip` must be a positive number, or None .*='3'"),
    ],
    ids=repr,
)
def test_argument_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        ProjectedLSTMCell(**{"units": 4} | kwargs)
