"""A spoken sentence as a WAV file, synthesized on the host.

The frames are a linear prediction of a recording in the test data of CMU PocketSphinx 5.1.1
(test/data/cards/002.wav, copyright 1999-2016 Carnegie Mellon University, BSD-2-Clause). The file
sounds like a male voice on a bad telephone line, and PocketSphinx recognises the sentence in it.
"""

import base64
import io
import math
import random
import struct
import wave
from functools import cache

SENTENCE = "four queen of clubs"
#: Words that a transcription must contain: "four" may also be written as "for" or "4".
KEYWORDS = ("queen", "clubs")
RATE = 8000
#: Samples of a frame of 20 ms, and the emphasis of low tones, which the frames lack.
_FRAME, _EMPHASIS = 160, 0.9
#: A frame's bytes: gain, samples between two pulses of the voice (0 for a whisper), four reflection
#: coefficients of a byte, and six of half a byte.
_CODED = base64.b64decode(
    b"LgAhHxseZ2Z3MAAhHBkaZ2doMAAnIx4idmhXMAAlJR8kiHd4LwAkJSMkeIiILQAdJCAmmXiILEUMJCUod2iHK0UMIict"
    b"hmioK0UNHiYwhmi5KkYNHyYxhmi5KkYLIykudnmoLUYMIyYudnm4L0ULKSUpd3m4LkULLyEkeIqnLUQLMBsmeHqXK0QK"
    b"LxopiXmXLEQMMBYniXmXLUQNMBQniYqXLUUQLxMoeJqHLkYULxcleHqHK0cVLBkieHqGJ0kYJB0jWWmXIEMVIx0eWHiH"
    b"HkMYKiMgV2iIGwAaKiQjV3h2GBkgJiInZ2iIFykkIx8hZ2iIFygfHxsfZ3h4FigdHxsZeHiJFRkeJiAeaHmIFAAgJSAg"
    b"aIh3EwAhJSQiaHiIIwAUHy4jiXiIJRkPKy8jaIh2JQAUJyMih2d3LUYTIR4lZ2qXMEkaHRgfeomXMUshKxYXaYuXMUok"
    b"LhgWWpuGMkkoLhwYWZqGM0oqJhoZaYqGJkoUHhEiqJeIJ0kVHxAjiJeYMUkjJBQkZ5p3M0kgIRolZ4mHMkoZIB8oaJmH"
    b"LUsRIyIpWYqHJE8RJSIkaHiHIwApJB8gaGd4KhkmKB4md3dnJhkhIx4keGdmHBklIB0fZ2hnGhknIx0fd4iIHgAXJCYq"
    b"d3d4LAAUKSopiHmHKAAiHR4sZ2eIKE8QHiYrZ3mIKU8PHCguZ3mYK08OHikuZ3mYL1ATHCUth2qnMlMXHCAsh3qnMlYY"
    b"HR8teHqnMVkYHh4seHqnLVsWIR8raHuXKl4VHxwoaHmXImETGRwmd4mXIAAuIxYiZ2eJIhkyJxUeZmd3IxkzIhwiZnZ2"
    b"IxkxJx8jdnd2JRk0Kx0kaHd3JRkyKyMleHd4JRkxKCApZ3iIJhkyJx8md2h3JBkuIyUneHd4IwAxJx8nd3h3HxkqISUp"
    b"eGd4"
)


@cache
def wav() -> bytes:
    """Return the sentence as 16-bit samples, with a tenth of a second of silence at both ends."""
    silence = [0.0] * (RATE // 10)
    samples = [max(-32000, min(32000, round(x))) for x in (*silence, *_synthesized(), *silence)]
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return file.getvalue()


def _synthesized() -> list[float]:
    """Run pulses or noise through a lattice filter whose coefficients are interpolated between
    frames.
    """
    chance, samples = random.Random(1), list[float]()
    before, held, emphasized, since = [0.0] * 11, [0.0] * 11, 0.0, 0
    for at in range(0, len(_CODED), 9):
        gain, pitch, *coded = _CODED[at : at + 9]
        wide, narrow = coded[:4], [half for byte in coded[4:] for half in (byte >> 4, byte & 15)]
        parts = [part / 63 for part in wide] + [part / 15 for part in narrow]
        now = [2 ** (gain / 5) - 1, *(math.sin((part - 0.5) * math.pi) for part in parts)]
        for step in range(_FRAME):
            level, *filters = (
                a + (b - a) * step / _FRAME for a, b in zip(before, now, strict=True)
            )
            since = since + 1 if pitch and since < pitch else 1
            voiced = math.sqrt(pitch) if since == pitch else 0.0
            value = level * (voiced if pitch else chance.gauss(0, 1))
            for place in range(9, -1, -1):
                value -= filters[place] * held[place]
                held[place + 1] = held[place] + filters[place] * value
            held[0] = value
            emphasized = value + _EMPHASIS * emphasized
            samples.append(emphasized)
        before = now
    return samples
