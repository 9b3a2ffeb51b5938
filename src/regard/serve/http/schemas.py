"""The JSON bodies of requests, strict: an unknown field or a value of another type is an error that names it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.errors import InputError

Item = str | list[str] | dict[str, str]
ITEM = "A text; two texts, or words to tag, as a list; or an object such as {question, context}."
Abstain = Annotated[
    float | None,
    Field(ge=0, le=1, strict=False, description="Mark answers with a confidence below this as abstained."),
]
Texts = Annotated[list[str] | None, Field(description="Several texts.")]
ModelField = Annotated[
    str | None, Field(description="Name of the model, as /v1/models lists it; the first one if not sent.")
]
OnError = Annotated[
    Literal["fail", "null"],
    Field(description='"fail": one bad text fails the request. "null": its answer is null, the others are answered.'),
]


class Body(BaseModel):
    """What every request has."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())
    model: ModelField = None


class BatchBody(Body):
    """A request with one or several inputs."""

    on_error: OnError = "fail"

    def options(self) -> dict[str, Any]:
        """The settings of the computation that were sent."""
        return {}


class TextBody(BatchBody):
    """One text or several."""

    text: Annotated[str | None, Field(description="One text.")] = None
    texts: Texts = None

    def items(self) -> list[Any]:
        return one_or_many("text", self.text, "texts", self.texts)


class PredictBody(BatchBody):
    """Answers of the model's task."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": ["A warm and funny film.", "Dull."]}]})
    text: Annotated[Item | None, Field(description=ITEM)] = None
    texts: Annotated[list[Item] | None, Field(description="Several of them.")] = None
    abstain: Abstain = None

    def items(self) -> list[Any]:
        return one_or_many("text", self.text, "texts", self.texts)

    def options(self) -> dict[str, Any]:
        return sent(self, "abstain")


class EmbedBody(TextBody):
    """Vectors of texts."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "A warm film.", "normalize": True}]})
    layer: Annotated[
        int | Literal["mix"], Field(description='0 is the embeddings, -1 the last layer; "mix" is for ELMo.')
    ] = -1
    pooling: Annotated[str, Field(description='"mean", "max" or "first" token; "auto" is the model\'s own.')] = "auto"
    normalize: Annotated[bool, Field(description="Scale every vector to length 1.")] = False

    def options(self) -> dict[str, Any]:
        return sent(self, "layer", "pooling", "normalize")


class OpenAIEmbeddingsBody(Body):
    """OpenAI's request for embeddings. Vectors have length 1; tokens instead of texts are not supported."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": ["A warm film."], "model": "minilm"}]})
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: None = None
    user: str | None = None

    def items(self) -> list[Any]:
        return one_or_many("input", None, "input", [self.input] if isinstance(self.input, str) else self.input)


class FillBody(TextBody):
    """Words for [MASK]."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "The man went to the [MASK].", "top": 5}]})
    top: Annotated[int, Field(ge=1, le=1000, description="Words for each mask.")] = 5

    def options(self) -> dict[str, Any]:
        return sent(self, "top")


class Question(BaseModel):
    """A question about a context."""

    model_config = ConfigDict(extra="forbid", strict=True)
    question: str
    context: str


class AnswerBody(BatchBody):
    """Answers to questions about a context: one question, or several objects in `questions`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "Who opened a window?", "context": "The cook opened a window."}]}
    )
    question: Annotated[str | None, Field(description="One question.")] = None
    context: Annotated[str | None, Field(description="The text that has its answer.")] = None
    questions: Annotated[list[Question] | None, Field(description="Several, each with its context.")] = None
    abstain: Abstain = None

    def items(self) -> list[Any]:
        if self.questions is None and (self.question is None or self.context is None):
            raise InputError('send "question" and "context", or a list of such objects as "questions".')
        one = None if self.question is None else {"question": self.question, "context": self.context}
        many = None if self.questions is None else [each.model_dump() for each in self.questions]
        return one_or_many("question", one, "questions", many)

    def options(self) -> dict[str, Any]:
        return sent(self, "abstain")


class DecodingFields(BatchBody):
    """Settings of decoding, as `regard generate --help` explains them; the model's own where not sent."""

    max_tokens: int | None = None
    min_tokens: int | None = None
    beams: int | None = None
    best: int | None = None
    length_penalty: Annotated[float | None, Field(strict=False)] = None
    sample: bool | None = None
    temperature: Annotated[float | None, Field(strict=False)] = None
    top_k: int | None = None
    top_p: Annotated[float | None, Field(strict=False)] = None
    min_p: Annotated[float | None, Field(strict=False)] = None
    seed: int | None = None
    repetition_penalty: Annotated[float | None, Field(strict=False)] = None
    no_repeat: int | None = None
    stop: list[str] | None = None
    banned: list[str] | None = None
    forced: list[str] | None = None

    def decoding(self) -> dict[str, Any]:
        """The settings that were sent."""
        names = DecodingFields.model_fields.keys() - BatchBody.model_fields.keys()
        return {name: value for name in sorted(names) if (value := getattr(self, name)) is not None}


class TranslateBody(DecodingFields):
    """Translations."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Good morning.", "beams": 4}]})
    text: str | None = None
    texts: Texts = None
    alignment: bool | None = None
    prefix: str | None = None

    def items(self) -> list[Any]:
        return one_or_many("text", self.text, "texts", self.texts)

    def options(self) -> dict[str, Any]:
        return sent(self, "alignment", "prefix") | self.decoding()


class GenerateBody(DecodingFields):
    """Continuations of prompts. With `stream`, of one prompt, as server-sent events."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"prompt": "Once upon a time", "max_tokens": 50, "top_p": 0.9, "seed": 0}]}
    )
    prompt: Annotated[str | None, Field(description="One prompt.")] = None
    prompts: Texts = None
    stream: Annotated[bool, Field(description="Send the text in pieces, as server-sent events.")] = False
    slide: Annotated[bool | None, Field(description="Drop the oldest tokens when the context is full.")] = None

    def items(self) -> list[Any]:
        return one_or_many("prompt", self.prompt, "prompts", self.prompts)

    def options(self) -> dict[str, Any]:
        return sent(self, "slide") | self.decoding()


class TokenizeBody(TextBody):
    """Tokens of texts with ids and offsets in code points."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "A warm film."}]})
    special: Annotated[bool, Field(description="With special tokens such as [CLS].")] = True

    def options(self) -> dict[str, Any]:
        return sent(self, "special")


class ExplainBody(BatchBody):
    """How much each word contributed to an answer; two texts as a list for pairs and questions."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "A warm and funny film."}]})
    text: str | list[str] | None = None
    texts: list[str | list[str]] | None = None
    method: Annotated[str | None, Field(description="Method, as in `regard explain`; a wrong one lists all.")] = None
    target: Annotated[str | None, Field(description="What to explain, such as a class; the answer if not sent.")] = None

    def items(self) -> list[Any]:
        return one_or_many("text", self.text, "texts", self.texts)

    def options(self) -> dict[str, Any]:
        return sent(self, "method", "target")


class ReloadBody(Body):
    """Load a model again from its folder; all of them if none is named."""


def sent(body: BaseModel, *names: str) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name in names if (value := getattr(body, name)) is not None}


def one_or_many(one_name: str, one: Any, many_name: str, many: list[Any] | None) -> list[Any]:
    """The inputs as a list. Raises InputError unless exactly one of the two fields was sent, and not empty."""
    if one is not None and many is not None:
        raise InputError(f'"{one_name}" and "{many_name}" were both sent; send one of them.')
    items = many if one is None else [one]
    if items is None:
        raise InputError(f'there is no text: send "{one_name}", or a list as "{many_name}".')
    if not items:
        raise InputError(f'"{many_name}" is an empty list; send at least one.')
    return items
