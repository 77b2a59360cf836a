"""ElmoClient: sentences to a model server, vectors back."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np

from keras_elmo.serving.address import parse_address
from keras_elmo.serving.batches import split
from keras_elmo.serving.certificates import certificates
from keras_elmo.serving.checks import check_headers, check_integer, check_name, check_timeout
from keras_elmo.serving.model_signature import ModelSignature, as_input
from keras_elmo.serving.retries import Deadline, with_retries
from keras_elmo.serving.sentences import (
    Encoded,
    as_inputs,
    check_sentences,
    check_shape,
    is_per_word,
    size,
)
from keras_elmo.serving.serving_error import ServingError
from keras_elmo.serving.transport import ServedModel, Transport, VersionStatus

Answer = TypeVar("Answer")

LENGTHS = "sequence_len"


class ElmoClient:
    """Asks a model that is served by TensorFlow Serving, over gRPC or REST.

    Both give the same arrays and raise the same errors. gRPC is the faster one, most of all for vectors: it asks for
    the outputs that are needed and gets them in binary, where REST gets all outputs of the model as text.

    A client may be used from several threads. It holds connections: close it, or use it in a `with` statement. Requests
    that fail for a passing reason (the server is starting, restarting or overloaded, a connection breaks) are sent
    again; running a model has no side effects.

    Args:
        address: "host:port" for gRPC, "http://host:port" for REST; "grpcs://host:port" and "https://host" for TLS.
        model: The name of the model. Defaults to "elmo".
        version: One version of it. Defaults to the newest that is loaded.
        label: The label of a version, such as "stable", instead of its number.
        signature: The signature that `embed` sends strings to, and `predict` its inputs. Defaults to
            "serving_default".
        timeout: Seconds for one call of a method, with all the requests that it makes. `None` for no limit. Defaults
            to 60.
        retries: How many more times a request is sent at most. Defaults to 5: about three seconds.
        batch_size: Sentences in one request at most. Defaults to 32.
        batch_bytes: Bytes of text in one request at most, each sentence taken to be as long as the longest. It is what
            bounds the answer, which has a vector for every five bytes or so. Defaults to 16384.
        headers: Sent with every request, in gRPC as metadata: `{"authorization": "Bearer .."}`.
        root_certificates: File with the certificates, in PEM format, that the server's must be signed by. Defaults
            to the public ones.
        client_certificate: File with the client's own certificate, for servers that ask for one.
        client_key: File with its private key.

    Raises:
        ValueError: if an argument is out of range, or a certificate cannot be used.

    Example:
    >>> client = ElmoClient("http://localhost:8501", label="stable")
    >>> client.embed([])
    []
    >>> client.close()
    """

    def __init__(
        self,
        address: str = "localhost:8500",
        model: str = "elmo",
        version: int | None = None,
        label: str | None = None,
        signature: str = "serving_default",
        timeout: float | None = 60.0,
        retries: int = 5,
        batch_size: int = 32,
        batch_bytes: int = 16384,
        headers: Mapping[str, str] | None = None,
        root_certificates: str | os.PathLike | None = None,
        client_certificate: str | os.PathLike | None = None,
        client_key: str | os.PathLike | None = None,
    ):
        server = parse_address(address)
        check_name("model", model)
        check_name("signature", signature)
        if version is not None:
            check_integer("version", version, 0)
        if label is not None:
            check_name("label", label)
        if version is not None and label is not None:
            raise ValueError(
                "`version` and `label` both name a version: give one of them. "
                f"Received: version={version}, label={label!r}"
            )
        check_timeout(timeout)
        check_integer("retries", retries, 0)
        check_integer("batch_size", batch_size, 1)
        check_integer("batch_bytes", batch_bytes, 1)
        headers = dict(headers or {})
        check_headers(headers)
        files = certificates(root_certificates, client_certificate, client_key)
        if not files.is_empty and not server.is_encrypted:
            raise ValueError(
                "Certificates are for TLS: write the address with grpcs:// or https://. "
                f"Received: address={address!r}"
            )
        self._address = address
        self._model = ServedModel(model, version, label)
        self._signature_name = signature
        self._timeout = timeout
        self._retries = retries
        self._batch_size = batch_size
        self._batch_bytes = batch_bytes
        self._signatures: dict[str, ModelSignature] | None = None
        self._is_closed = False
        # Each brings a library that the other does without.
        self._transport: Transport
        if server.is_rest:
            from keras_elmo.serving.rest_transport import RestTransport

            self._transport = RestTransport(server, self._model, headers, files)
        else:
            from keras_elmo.serving.grpc_transport import GrpcTransport

            self._transport = GrpcTransport(server, self._model, headers, files)

    @overload
    def embed(
        self, sentences: Iterable[str] | Iterable[Sequence[str]], output: str = "elmo"
    ) -> list[np.ndarray]: ...

    @overload
    def embed(
        self,
        sentences: Iterable[str] | Iterable[Sequence[str]],
        output: list[str] | tuple[str, ...],
    ) -> dict[str, list[np.ndarray]]: ...

    def embed(
        self,
        sentences: Iterable[str] | Iterable[Sequence[str]],
        output: str | list[str] | tuple[str, ...] = "elmo",
    ) -> list[np.ndarray] | dict[str, list[np.ndarray]]:
        """Gets the vectors of sentences, in their order, without padding.

        Any number of sentences: they are sent in as many requests as it takes.

        Args:
            sentences: Strings, which the model cuts into tokens; or lists of tokens, for the signature "tokens".
            output: The name of an output, or several: "elmo" (default), "word_emb", "lstm_outputs1", "tokens" and so on
                have one row for each token, "default" and "sequence_len" are one for the sentence.

        Returns:
            For each sentence, an array: (num_tokens, dim) of float32 for "elmo". If several outputs were asked for,
            such a list for each by name.

        Raises:
            ValueError: if `sentences` or `output` is not of this kind.
            ServingError: if the model has no such output or signature, or the server fails.
        """
        names = [output] if isinstance(output, str) else output
        if (
            not isinstance(names, list | tuple)
            or not names
            or not all(isinstance(name, str) for name in names)
        ):
            raise ValueError(
                f"`output` must be the name of an output, or a list of names. Received: {output!r}"
            )
        texts, is_cut = check_sentences(sentences)
        results: dict[str, list[Any]] = {name: [None] * len(texts) for name in names}
        if texts:
            self._embed(texts, is_cut, results)
        return results[output] if isinstance(output, str) else results

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str | None = None,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, np.ndarray]:
        """Runs any signature of any model, in one request.

        Args:
            inputs: Name -> array, or what NumPy makes one of. They are turned into the model's types.
            signature: The signature. Defaults to that of the client.
            outputs: Names of the outputs to get. Defaults to all.

        Returns:
            Name -> array, as the server gives it, padding included. Strings are `str`, in arrays of objects; outputs
            whose name ends in `_bytes` hold `bytes`.

        Raises:
            ValueError: if an input is missing, is not one of the model's, or is of another type.
            ServingError: if the model has no such signature or output, or the server fails.
        """
        name = self._signature_name if signature is None else signature
        deadline = Deadline(self._timeout)
        spec = self._signature(name, outputs or (), deadline)
        if set(inputs) != set(spec.inputs):
            raise ValueError(
                f"`inputs` of the signature `{name}` must be {_list(spec.inputs)}. "
                f"Received: {_list(inputs)}"
            )
        return self._predict(inputs, name, spec, outputs, deadline)

    def classify(
        self, texts: Iterable[str], signature: str = "classify"
    ) -> list[list[tuple[str, float]]]:
        """Classifies texts with a model that has TensorFlow Serving's classification signature.

        Args:
            texts: Strings, any number of them.
            signature: The signature. Defaults to "classify".

        Returns:
            For each text, pairs of label and score, the best first.

        Raises:
            ValueError: if `texts` are not strings.
            ServingError: if the model has no such signature, or the server fails.
        """
        encoded, is_cut = check_sentences(texts)
        if is_cut:
            raise ValueError("`texts` must be strings. Received lists of tokens: join them.")
        deadline = Deadline(self._timeout)
        if encoded:
            self._signature(signature, (), deadline)
        results: list[Any] = [None] * len(encoded)
        for batch in self._split(encoded):
            part = [encoded[number] for number in batch]
            answer = self._call(partial(self._transport.classify, part, signature), deadline)
            if len(answer) != len(batch):
                raise ServingError(
                    "INTERNAL", f"the server answered {len(answer)} results to {len(batch)} texts."
                )
            for number, pairs in zip(batch, answer, strict=True):
                results[number] = sorted(pairs, key=lambda pair: -pair[1])
        return results

    def metadata(self) -> dict[str, ModelSignature]:
        """Gets the signatures of the model: the names, types and shapes of what it takes and gives.

        Raises:
            ServingError: if the server fails.
        """
        return dict(self._get_signatures(Deadline(self._timeout)))

    def status(self) -> list[VersionStatus]:
        """Gets the state of every version of the model that the server knows; with `version`, of that one.

        Raises:
            ServingError: if the server does not know the model, or fails.
        """
        return self._call(self._transport.status, Deadline(self._timeout))

    def close(self) -> None:
        """Closes the connections. The client cannot be used any more."""
        self._is_closed = True
        self._transport.close()

    def __enter__(self) -> "ElmoClient":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        parts = [repr(self._address), f"model={self._model.name!r}"]
        for name in ("version", "label"):
            value = getattr(self._model, name)
            if value is not None:
                parts.append(f"{name}={value!r}")
        return f"ElmoClient({', '.join(parts)})"

    def _embed(self, texts: list[Encoded], is_cut: bool, results: dict[str, list[Any]]) -> None:
        deadline = Deadline(self._timeout)
        name = "tokens" if is_cut else self._signature_name
        wanted = list(results)
        signature = self._signature(name, wanted, deadline)
        per_word = {name for name in wanted if is_per_word(name, signature.outputs[name])}
        if per_word and not is_cut and LENGTHS not in wanted:
            wanted.append(LENGTHS)
            signature = self._signature(name, wanted, deadline)
        for batch in self._split(texts):
            part = [texts[number] for number in batch]
            answer = self._predict(
                as_inputs(part, name, signature), name, signature, wanted, deadline
            )
            lengths = [len(text) for text in part]
            if per_word and not is_cut:
                check_shape(LENGTHS, answer[LENGTHS], (len(batch),))
                lengths = answer[LENGTHS].tolist()
            for output, places in results.items():
                rows = answer[output]
                if output in per_word:
                    check_shape(output, rows, (len(batch), max(lengths)))
                    # Copied, for a part of an array keeps the whole of it.
                    cut = [row[:length].copy() for row, length in zip(rows, lengths, strict=True)]
                else:
                    check_shape(output, rows, (len(batch),))
                    cut = list(rows)
                for number, row in zip(batch, cut, strict=True):
                    places[number] = row

    def _split(self, texts: list[Encoded]) -> Iterator[list[int]]:
        return split([size(text) for text in texts], self._batch_size, self._batch_bytes)

    def _predict(
        self,
        inputs: Mapping[str, Any],
        name: str,
        signature: ModelSignature,
        outputs: Sequence[str] | None,
        deadline: Deadline,
    ) -> dict[str, np.ndarray]:
        arrays = {key: as_input(key, value, signature.inputs[key]) for key, value in inputs.items()}
        try:
            answer = self._call(
                partial(self._transport.predict, arrays, name, signature, outputs), deadline
            )
        except ServingError as error:
            if not error.is_transient:
                # Another version may be served by now.
                self._signatures = None
            raise
        for output in outputs or ():
            if output not in answer:
                self._signatures = None
                raise ServingError(
                    "INTERNAL", f"the server's answer has no `{output}`; it has {_list(answer)}."
                )
        return answer

    def _signature(self, name: str, outputs: Sequence[str], deadline: Deadline) -> ModelSignature:
        """The signature, if the model has it with these outputs."""
        if self._signatures is not None:
            known = self._signatures.get(name)
            if known is not None and set(outputs) <= set(known.outputs):
                return known
        # Not asked for yet, or another version is served by now.
        signatures = self._get_signatures(deadline)
        if name not in signatures:
            raise ServingError(
                "INVALID_ARGUMENT",
                f"the model `{self._model.name}` has no signature `{name}`; it has {_list(signatures)}.",
            )
        signature = signatures[name]
        for output in outputs:
            if output not in signature.outputs:
                purpose = ", by which padding is cut off" if output == LENGTHS else ""
                raise ServingError(
                    "INVALID_ARGUMENT",
                    f"the signature `{name}` of the model `{self._model.name}` does not have the output "
                    f"`{output}`{purpose}; it has {_list(signature.outputs)}.",
                )
        return signature

    def _get_signatures(self, deadline: Deadline) -> dict[str, ModelSignature]:
        signatures = self._call(self._transport.signatures, deadline)
        # TensorFlow's own, which is nothing to call.
        signatures.pop("__saved_model_init_op", None)
        self._signatures = signatures
        return signatures

    def _call(self, attempt: Callable[[float | None], Answer], deadline: Deadline) -> Answer:
        if self._is_closed:
            raise ValueError(f"{self!r} is closed. Make a new client.")
        return with_retries(attempt, deadline, self._retries)


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "none"
