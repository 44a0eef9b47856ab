"""A spec whose approval has a form, for the tests of every surface."""

from __future__ import annotations

from pathlib import Path

from tests.workbench import HEAD, write_spec
from workflows.registry import SpecFile

#: A line, a text of several, a choice, both kinds of numbers, a tick, lists of lines and of choices, a mapping that may
#: be left out with a mapping in it, and a list of mappings.
FORM = """\
type: object
required: [amount, account]
properties:
  amount: {type: number, minimum: 1, maximum: 500, title: "Amount to pay", description: "What we owe, in SGD."}
  account: {type: string, enum: [main, petty cash]}
  copies: {type: integer, default: 1, minimum: 0}
  note: {type: string, format: multiline, maxLength: 60}
  reference: {type: string, pattern: "^R-[0-9]+$"}
  urgent: {type: boolean, description: "Pay today."}
  tags: {type: array, items: {type: string, minLength: 2}}
  tell: {type: array, items: {type: string, enum: [vendor, bookkeeping]}}
  address:
    type: object
    required: [city]
    properties:
      city: {type: string}
      country: {type: string, default: SG}
      point: {type: object, properties: {lat: {type: number}}}
  parts: {type: array, items: {type: object, properties: {sum: {type: number}}}}
"""
#: What a browser sends when only the two needed fields were filled in.
LEAST = {
    "answers.amount": "120.50",
    "answers.account": '"main"',
    "answers.copies": "1",
    "answers.note": "",
    "answers.reference": "",
    "answers.tags": "",
    "answers.address.city": "",
    "answers.address.country": "SG",
    "answers.address.point": "",
    "answers.parts": "",
}
LEAST_ANSWERS = {"amount": 120.5, "account": "main", "copies": 1, "urgent": False}


def answering(folder: Path, *, form: str = FORM, more: str = "") -> SpecFile:
    """One approval with a form, and `more` keys of its policy."""
    indented = "".join(f"        {line}\n" for line in form.splitlines())
    text = HEAD.replace('"1.1"', '"1.2"') + (
        '  workflow:\n    - step: sign\n      type: approval\n      message: "Pay {{{{ input }}}}?"\n'
        + more.replace("{", "{{").replace("}", "}}")
        + "      form:\n"
        + indented.replace("{", "{{").replace("}", "}}")
    )
    return write_spec(folder, text, name="answering.yaml")
