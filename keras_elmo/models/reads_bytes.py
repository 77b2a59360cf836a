"""What can be made of a model depends on what it reads."""

from keras_elmo.models.elmo_model import ElmoModel


def check_reads_bytes(what: str, model: ElmoModel) -> None:
    """Raises `ValueError` unless the model reads bytes, which a TensorFlow graph can make of strings.

    Args:
        what: What needs it, the beginning of the sentence.
        model: The model.
    """
    if model.vocabulary_size is not None:
        raise ValueError(
            f"{what} needs a model that reads characters; this one reads the token ids of a vocabulary: "
            "call the model itself with `Vocabulary.token_ids`."
        )
    if model.lexicon is not None:
        raise ValueError(
            f"{what} needs a model that reads bytes; this one, of ELMoForManyLangs' kind, reads the ids of a lexicon, "
            "which are made of words in Python: use `keras_elmo.Embedder`, or call the model itself with "
            "`model.ids(sentences)`."
        )
