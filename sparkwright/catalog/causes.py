"""Known causes of a service that is slower than its card's figures, with their symptoms."""

from typing import Literal

from pydantic import Field

from sparkwright.catalog.data import Data, Name, Scalar

#: Symptoms of one measured load. "slow" and "fine" refer to the card's figure: decode by tokens/s
#: of a stream or time per token, throughput by tokens/s of all streams together.
Symptom = Literal[
    "decode slow",
    "decode fine",
    "throughput slow",
    "first token slow",
    "prefill slow",
    "acceptance low",
    "acceptance fine",
    "no drafter",
    "errors",
    "shorter answers",  # shorter than in the card's measurement
    "clock low",  # below 85 % of the driver's maximum
    "clock unknown",
]


class Cause(Data):
    """A known cause of a slow service.

    Attributes:
        id: the cause's name in reports.
        when: symptoms that must all be present.
        concurrency: least number of requests at a time.
        prompt_tokens: least length of the prompt.
        tags: image tags with this cause; empty for any tag.
        ruled_out_by: vLLM argument -> value that rules out this cause.
        explanation: the cause as a phrase, which the output puts after "perhaps".
        look: way to confirm the cause.
    """

    id: Name
    when: tuple[Symptom, ...] = Field(min_length=1)
    concurrency: int = 1
    prompt_tokens: int = 0
    tags: tuple[str, ...] = ()
    ruled_out_by: dict[str, Scalar] = Field(default_factory=dict)
    explanation: str
    look: str
    source: str


class Causes(Data):
    """A list of causes, the likeliest first if several causes explain the same symptoms.

    Attributes:
        causes: the list.
    """

    kind: Literal["causes"]
    name: Name
    causes: tuple[Cause, ...]
