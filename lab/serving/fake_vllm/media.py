"""Fake audio and image routes: `/v1/audio/transcriptions` as in vLLM, `/v1/audio/speech` and
`/v1/images/generations` as in vLLM-Omni. A model has the route that its architecture names.
Requests and answers have the fields of the engines' protocol classes.

The fake runs no model. The fake decodes a WAV file and compares the loudness of each tenth with a
stored recording, so the transcript is right, and an incomplete file is detected.
"""

import base64
import io
import math
import struct
import time
import wave
import zlib
from email import message_from_bytes
from typing import Any

from .backend import Backend
from .errors import bad_request
from .http_server import Request, Response
from .server_settings import Settings
from .text import compact

_ROUTES = {
    "Whisper": "/v1/audio/transcriptions", "TTS": "/v1/audio/speech",
    "ImagePipeline": "/v1/images/generations",
}  # fmt: skip
#: Loudness of "four queen of clubs" as a man says it on the telephone, by tenths of its length.
_KNOWN = (2200, 3500, 2300, 100, 900, 1500, 600, 1200, 1100, 200)


def route(settings: Settings) -> str | None:
    """The only route of a model for speech or pictures; None for any other model."""
    name = (settings.model.config.get("architectures") or [""])[0]
    return next((path for part, path in _ROUTES.items() if part in name), None)


async def transcription(backend: Backend, request: Request) -> Response:
    """The text of a speech file; ApiError for a request that vLLM refuses."""
    kind = request.headers.get("content-type", "")
    form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + request.body)
    named: dict[Any, Any] = {
        part.get_param("name", header="content-disposition"): part for part in form.walk()
    }
    if "file" not in named or "model" not in named:
        raise bad_request("Field required", "file")
    backend.model_of({"model": named["model"].get_payload()})
    await backend.faults.before_generation()
    text, seconds = _heard(named["file"].get_payload(decode=True))
    usage = {"type": "duration", "seconds": math.ceil(seconds)}
    if backend.faults.deaf:
        text = " Thank you."  # Whisper's answer to silence
    return Response(200, compact({"text": text, "usage": usage}).encode())


async def speech(backend: Backend, body: dict[str, Any]) -> Response:
    """A tone for each letter of a text, as a WAV file of 24 kHz."""
    backend.model_of(body)
    if not isinstance(body.get("input"), str):
        raise bad_request("Field required", "input")
    await backend.faults.before_generation()
    loud = 0 if backend.faults.silent_speech else 8000
    tones = [200 + 15 * (ord(letter) % 32) for letter in body["input"]]
    samples = [
        round(loud * math.sin(2 * math.pi * tone * at / 24000)) for tone in tones
        for at in range(1440)
    ]  # fmt: skip
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(24000)
        sound.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return Response(200, file.getvalue(), "audio/wav")


async def image(backend: Backend, body: dict[str, Any]) -> Response:
    """A red ball on green, in the requested size."""
    backend.model_of(body)
    width, _, height = str(body.get("size") or "1024x1024").partition("x")
    if "prompt" not in body or not width.isdigit() or not height.isdigit():
        raise bad_request("size must be in format 'WIDTHxHEIGHT'", "size")
    await backend.faults.before_generation()
    wide, high = int(width), int(height)
    ball = 0 if backend.faults.blank_picture else min(wide, high) // 3
    rows = (
        b"\0" + b"".join(
            b"\xd0\x20\x20" if math.hypot(x - wide / 2, y - high / 2) < ball else b"\x20\xa0\x40"
            for x in range(wide)
        )
        for y in range(high)
    )  # fmt: skip
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)),
                           (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    )  # fmt: skip
    data = [{"b64_json": base64.b64encode(png).decode(), "url": None, "revised_prompt": None}]
    size = f"{wide}x{high}"
    answer = {"created": int(time.time()), "data": data, "output_format": "png", "size": size}
    return Response(200, compact(answer).encode())


def _heard(file: bytes) -> tuple[str, float]:
    """Text and seconds of a WAV file; ApiError for any other file."""
    try:
        with wave.open(io.BytesIO(file)) as sound:
            rate, data = sound.getframerate(), sound.readframes(sound.getnframes())
    except (wave.Error, EOFError):
        raise bad_request("Invalid or unsupported audio file.", "file") from None
    samples = struct.unpack(f"<{len(data) // 2}h", data)
    loud_at = [at for at, sample in enumerate(samples) if abs(sample) > 300]
    whole = samples[loud_at[0] : loud_at[-1]] if loud_at else ()
    step = len(whole) // len(_KNOWN)
    if step < 100:
        return " Thank you.", len(samples) / rate
    loud = [sum(map(abs, whole[n * step : (n + 1) * step])) / step for n in range(len(_KNOWN))]
    lengths = math.hypot(*loud) * math.hypot(*_KNOWN)
    alike = sum(a * b for a, b in zip(loud, _KNOWN, strict=True)) / lengths
    return (" Four queen of clubs." if alike > 0.95 else " you"), len(samples) / rate
