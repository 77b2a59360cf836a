import pytest

from keras_elmo.corpus import random_generator


def numbers(*place):
    return random_generator(*place).random(4).tolist()


def test_the_same_place_gives_the_same_numbers_and_no_other_does():
    places = [
        ("negatives", 1, 5, 0),
        ("negatives", 1, 5, 1),
        ("negatives", 1, 6, 0),
        ("negatives", 2, 5, 0),
        ("sentences", 1, 5, 0),
        ("negatives", 1, 5),
        ("negatives", 1, 2**40, 0),
    ]
    drawn = [numbers(*place) for place in places]
    assert drawn == [numbers(*place) for place in places]
    assert len({tuple(row) for row in drawn}) == len(places)


@pytest.mark.parametrize("place", [(-1,), (1, -1), (1, 2.0), (True,), ("1",)])
def test_numbers_below_zero_and_other_things_are_refused(place):
    with pytest.raises(ValueError, match="`seed` and the numbers that follow it must be integers"):
        random_generator("negatives", *place)
