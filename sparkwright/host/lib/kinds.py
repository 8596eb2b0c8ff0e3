"""Kinds of models, each with a request that shows whether the model works, and a check of the
answer. Chat is not a kind here, since its token budget and thinking depend on the service
(check.py).
"""

import base64
import io
import math
import os
import struct
import wave
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkwright.host.lib import documents, http, records, voice
from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.faults import SHAPE, Fault, clip, fail_if, fail_if_only_marks

_DOCUMENTS = ("Sow the carrots in spring.", "Paris is the capital of France.", "The oil is low.")
#: The question, and the document that answers it.
_QUERY, _RIGHT = "What is the capital of France?", 1
#: Keys of a model's configuration that may hold a vector's length.
_LENGTHS = ("hidden_size", "out_features", "projection_dim", "d_model", "n_embd")
#: Side of the requested picture in pixels.
_SIDE = 256
#: Standard deviation of 16-bit samples below which a recording is silent, and shortest duration of
#: a word in seconds.
_SILENCE, _SHORTEST = 50.0, 0.2
_FORM = "sparkwright-smoke-form"


@records.dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes:
        request: body without the model's name. A function in the body returns a file; a body with a
            file is sent as a form.
        judge: function of the answer and the directory of the model's files. The function describes
            the answer in a few words, or raises Fault if the model does not work.
        least: body of a cheaper request, which only shows that the model answers; empty if the
            request itself is cheap.
    """

    request: Mapping[str, Any]
    judge: Callable[[http.Answer, Path], str]
    least: Mapping[str, Any]


def body(fields: Mapping[str, Any], model: str) -> dict[str, Any] | http.Form:
    """Return the body of a request to a model."""
    whole = {"model": model, **fields}
    if not any(map(callable, whole.values())):
        return whole
    parts = b""
    for name, value in whole.items():
        file = '; filename="sentence.wav"\r\nContent-Type: audio/wav' if callable(value) else ""
        head = f'--{_FORM}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        content = value() if callable(value) else str(value).encode()
        parts += head.encode() + content + b"\r\n"
    return http.Form(f"multipart/form-data; boundary={_FORM}", parts + f"--{_FORM}--\r\n".encode())


def judged(kind: str, answer: http.Answer, files: Path | None = None) -> str:
    """Judge the answer to a kind's request, and describe it in a few words.

    Raises:
        Fault: the model does not work.
    """
    try:
        return KINDS[kind].judge(answer, files or Path(os.devnull))
    # The health program judges answers of engines: no answer or model file may crash it.
    except SHAPE as error:
        raise Fault("shape", f"the answer has an unexpected form: {error!r}") from None


def cheapest(routes: Mapping[str, str]) -> str:
    """Return the cheapest kind of request that a service supports."""
    return next(kind for kind in KINDS if kind in routes)


def _continued(answer: http.Answer, _: Path) -> str:
    data = answer.json()
    text = data["choices"][0]["text"]
    empty = not text.strip() or not data["usage"]["completion_tokens"]
    fail_if(empty, "empty", "the text is not continued: an empty completion")
    fail_if_only_marks(text)
    return clip(text, 40)


def _ranked(answer: http.Answer, _: Path) -> str:
    scores = {item["index"]: item["relevance_score"] for item in answer.json()["results"]}
    return f"the right document is first, {_best(scores):.3g}"


def _scored(answer: http.Answer, _: Path) -> str:
    scores = {item["index"]: item["score"] for item in answer.json()["data"]}
    return f"best score: {_best(scores):.3g}"


def _best(scores: Mapping[int, float]) -> float:
    """Return the highest score of the documents; raise Fault if another document scores higher than
    the right document.
    """
    first = max(scores, key=lambda number: scores[number])
    finite = len(scores) == len(_DOCUMENTS) and all(map(math.isfinite, scores.values()))
    shown = f"document {first} has the highest of the scores {list(scores.values())}"
    fail_if(not finite or first != _RIGHT, "order", f"{shown}, not document {_RIGHT}")
    return scores[first]


def _vectors(answer: http.Answer, files: Path) -> str:
    vectors = [item["embedding"] for item in answer.json()["data"]]
    numbers = [number for vector in vectors for number in vector]
    finite = all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
    configs = [documents.read(path) for path in files.glob("**/config.json")]
    parts = [part for config in configs if isinstance(config, dict)
             for part in (config, *config.values()) if isinstance(part, dict)]  # fmt: skip
    own = {part[key] for part in parts for key in _LENGTHS if isinstance(part.get(key), int)}
    lengths = {len(vector) for vector in vectors}
    sound = finite and all(map(any, vectors)) and len(vectors) == len(_DOCUMENTS)
    shown = f"{len(vectors)} vectors of {lengths} numbers (valid: {sound}); model dimension: {own}"
    fail_if(not sound or len(lengths) != 1 or (own and not lengths <= own), "vector", shown)
    return f"vectors of {lengths.pop()} numbers"


def _transcribed(answer: http.Answer, _: Path) -> str:
    text = str(answer.json()["text"])
    deaf = not all(word in text.lower() for word in voice.KEYWORDS)
    fail_if(deaf, "deaf", f"spoken: {voice.SENTENCE!r}; written: {clip(text)!r}")
    return f"written: {clip(text, 40)}"


def _spoken(answer: http.Answer, _: Path) -> str:
    try:
        with wave.open(io.BytesIO(answer.body)) as sound:
            width, rate = sound.getsampwidth(), sound.getframerate()
            data = sound.readframes(1 << 24)
    except (wave.Error, EOFError) as error:
        raise ValueError(f"the file is not a WAV file: {error}") from None
    samples = struct.unpack(f"<{len(data) // 2}h", data[: len(data) // 2 * 2])
    fail_if(width != 2 or not samples, "silence", f"{len(data)} bytes, {8 * width}-bit samples")
    mean = sum(samples) / len(samples)
    spread = math.sqrt(sum((sample - mean) ** 2 for sample in samples) / len(samples))
    shown = f"{len(samples) / rate:.1f} s at {rate} Hz, loudness {spread:.0f} of 32768"
    fail_if(spread < _SILENCE or len(samples) < _SHORTEST * rate, "silence", shown)
    return shown


def _drawn(answer: http.Answer, _: Path) -> str:
    data = base64.b64decode(answer.json()["data"][0]["b64_json"], validate=True)
    head = struct.unpack(">8sI4sIIBBBBB", data[:29]) if len(data) > 29 else ()
    if not head or (head[0], head[2], head[5]) != (b"\x89PNG\r\n\x1a\n", b"IHDR", 8) or head[9]:
        raise ValueError(f"not an 8-bit PNG without interlacing: {data[:24]!r}")
    size, depth, packed, place = head[3:5], {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[head[6]], b"", 8
    kind = b""
    while place < len(data) and kind != b"IEND":
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        packed += data[place + 8 : place + 8 + length] if kind == b"IDAT" else b""
        place += 12 + length
    try:
        raw = zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"the PNG is incomplete: {error}") from None
    shown, line = f"a picture of {size[0]} x {size[1]}", 1 + size[0] * depth
    fail_if(size != (_SIDE, _SIDE) or len(raw) != size[1] * line, "blank", shown)
    # With any PNG filter, one colour is a repeated byte, or zeros if the bytes are differences.
    rows = [raw[at + 1 : at + line] for at in range(0, len(raw), line)]
    plain = all(row.count(row[-depth:]) * depth >= len(row) - depth for row in rows)
    fail_if(plain, "blank", f"{shown} has only one colour")
    return shown


#: Kinds in the order of their cost, the cheapest first.
KINDS: dict[str, Kind] = {
    "completion": Kind(
        {"prompt": "one two three four five six", "max_tokens": 8, "temperature": 0},
        _continued,
        {"prompt": "1 2 3", "max_tokens": 1},
    ),
    "rerank": Kind(
        {"query": _QUERY, "documents": _DOCUMENTS}, _ranked,
        {"query": "1", "documents": ["1 2 3"]},
    ),
    "score": Kind(
        {"text_1": _QUERY, "text_2": _DOCUMENTS}, _scored, {"text_1": "1", "text_2": ["1 2 3"]}
    ),
    "embedding": Kind({"input": _DOCUMENTS}, _vectors, {"input": ["1 2 3"]}),
    "transcription": Kind(
        {"file": voice.wav, "language": "en", "temperature": 0, "response_format": "json"},
        _transcribed,
        {},
    ),
    "speech": Kind({"input": f"{voice.SENTENCE}.", "response_format": "wav"}, _spoken, {}),
    # Two steps (an option that only vLLM-Omni has) give a coarse picture, which is enough.
    "image": Kind(
        {"prompt": "a red ball on green grass", "n": 1, "size": f"{_SIDE}x{_SIDE}",
         "response_format": "b64_json", "num_inference_steps": 2},
        _drawn,
        {},
    ),
}  # fmt: skip
