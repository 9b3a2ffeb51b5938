"""Small data sets for tests of the data check: clean texts, and functions that write them as files."""

from __future__ import annotations

import json
from typing import Any

from regard.data.check.finding import CheckReport

GOOD = (
    "The kitchen serves warm bread and leek soup before noon",
    "Our train was late again because of snow on the line",
    "She wrote a long letter about the roses in her garden",
    "Nobody knew why the old door had been painted green",
    "Two students measured the hall with a piece of string",
    "My uncle keeps bees behind the church in summer",
    "Rain fell all night so the match was called off",
    "The baker closed early and went fishing with his son",
    "A small boat waited at the pier until the fog lifted",
    "They sold the piano to pay for a new roof",
    "Every clock in the shop showed a different hour",
    "He forgot his keys but climbed in through the window",
    "The museum lends coats to visitors who come in shorts",
    "Grandfather carved spoons from the branches of a plum tree",
    "We lost the map and asked a shepherd for the way",
    "The choir sang twice as loud when the lights went out",
    "Her first novel sold nine copies and one was returned",
    "Someone left a cello on the last bus to the harbour",
    "The mayor promised to fix the bridge by next spring",
    "Frost killed the tomatoes but spared the cabbages",
    "A stray dog followed the postman through the whole village",
    "The dentist hums old songs while he works",
    "Three ladders were stolen from the site over the weekend",
    "It took us an hour to boil water on that stove",
    "The library is quiet except for the radiator",
    "His brother repairs accordions in a cellar without windows",
    "The cheese had to be carried down the hill by mule",
    "Nobody applauded until the magician found his rabbit",
    "The lift stops between floors when the wind blows from the west",
    "I bought a lamp that smells of oranges",
    "Children built a dam across the brook and flooded the path",
    "The ferry captain knits scarves during the crossing",
    "Our neighbour waters plastic flowers to look busy",
    "An owl nests in the chimney of the town hall",
    "The recipe asks for more patience than butter",
    "Workers found a coin from Rome under the car park",
    "She paints only at dawn and sleeps through lunch",
    "The goats learned how to open the gate last week",
    "A violinist practised scales while the soup burned",
    "They named the street after a horse that won once",
)


def good(count: int = 12) -> list[str]:
    """Plain English texts, no two alike."""
    return list(GOOD[:count])


def csv_of(rows: list[tuple[str, str]], header: str = "text,label") -> str:
    return header + "\n" + "".join(f'"{text}",{label}\n' for text, label in rows)


def rows(count: int = 12, *more: tuple[str, str]) -> str:
    """A clean CSV of two labels; what is added stands in line count + 2 and after."""
    return csv_of([(text, ("pos", "neg")[n % 2]) for n, text in enumerate(good(count))] + list(more))


def jsonl(*objects: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def entities(*spans: tuple[int, int], text: str = "Ada Lovelace met Charles Babbage in London") -> dict[str, Any]:
    return {"text": text, "entities": [{"start": start, "end": end, "label": "PER"} for start, end in spans]}


def question(
    answer: str, start: int | None, ask: str = "Who came?", context: str = "Ada came to Bath by coach."
) -> dict[str, Any]:
    return {
        "id": ask + answer,
        "context": context,
        "question": ask,
        "answers": [{"text": answer, "answer_start": start}],
    }


SPANS = (entities((0, 12), (17, 32)), entities((4, 8), text="Mrs Dale reads"), entities((0, 3), text="Tom Hart sang"))

QUESTIONS = (question("Ada", 0), question("Bath", 12, "Where to?"), question("coach", 20, "How did she come?"))

CONLL = "Ada B-PER\nLovelace I-PER\nsang O\n\nin O\nLondon B-LOC\n\nand O\nBath B-LOC\n\n"

PAIRS = (
    ("The house is old.", "La casa es vieja."),
    ("We ate bread and soup.", "Comimos pan y sopa."),
    ("She plays the piano every single day.", "Ella toca el piano todos los días."),
    ("My brother works in a large bank in the city.", "Mi hermano trabaja en un gran banco de la ciudad."),
    ("He said that she was not at home with the others.", "Dijo que ella no estaba en casa con los demás."),
    ("They have a dog and it is on the sofa all day.", "Tienen un perro y está en el sofá todo el día."),
    ("This is the man who was with her in the garden.", "Este es el hombre que estaba con ella en el jardín."),
    ("I do not know if you will be there for the show.", "No sé si vas a estar allí para el espectáculo."),
    ("It rained the whole week and nobody went out.", "Llovió toda la semana y nadie salió a la calle."),
)


def tsv(*more: tuple[str, str]) -> str:
    return "english\tspanish\n" + "".join(f"{one}\t{two}\n" for one, two in (*PAIRS, *more))


def kinds(report: CheckReport) -> dict[str, int | None]:
    return {finding.kind: finding.line for finding in report.findings}
