"""Shapes of single texts that more than one part of a spec uses."""

from __future__ import annotations

from dataclasses import dataclass

from workflows.spec import patterns
from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.shapes import Faults, Text, kind_of

NON_EMPTY = Text(non_empty=True)
PLAIN = Text()


@dataclass(frozen=True, kw_only=True)
class EnvPlaceholder:
    """Exactly `${NAME}`. What was written instead may be a secret and is never repeated."""

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        wanted = f'"{path[-1]}" must be an environment variable reference such as ${{NAME}}, never a literal secret'
        if not isinstance(value, str):
            faults.hard(path, f"{wanted}; it is {kind_of(value)}, not a string")
        elif not patterns.ENV_PLACEHOLDER.fullmatch(value):
            faults.soft(path, wanted)
        return value


def _is_url(value: str, path: Path, faults: Faults) -> None:
    if not patterns.is_absolute_url(value):
        faults.soft(path, f'"{path[-1]}" must be an absolute URL such as http://localhost:11434/v1')


def _is_component(value: str, path: Path, faults: Faults) -> None:
    if not patterns.COMPONENT.fullmatch(value):
        faults.soft(path, f'"{path[-1]}" must name an exact version, as in namespace/name@1.2.3')


def _is_response_path(value: str, path: Path, faults: Faults) -> None:
    if not patterns.RESPONSE_PATH.fullmatch(value):
        name = f'"{path[-1]}"' if isinstance(path[-1], str) else f'"{clipped(value)}"'
        faults.soft(
            path,
            f'{name} is not a path: it consists of keys (letters, digits, "_", "$", "-") joined by dots, '
            'of quoted keys such as ["a key"] and of indexes such as [0]',
        )


def compiles(value: str, path: Path, faults: Faults) -> None:
    problem = patterns.regex_problem(value)
    if problem:
        faults.soft(path, f'"{path[-1]}" is not a valid ECMAScript regular expression: {problem}')


URL = Text(rules=(_is_url,))
COMPONENT = Text(rules=(_is_component,))
RESPONSE_PATH = Text(rules=(_is_response_path,))
REGEX = Text(rules=(compiles,))


def header_name_problem(name: str) -> str | None:
    if patterns.HEADER_NAME.fullmatch(name):
        return None
    return f'"{clipped(name)}" is not a header name: it is not empty and has no blanks, colons and the like'


def parameter_name_problem(name: str) -> str | None:
    return None if name else "the name of a query parameter must not be empty"


def identifier_problem(name: str) -> str | None:
    if patterns.IDENTIFIER.fullmatch(name):
        return None
    return f'"{clipped(name)}" is not a valid name: it starts with a letter or "_", then letters, digits and "_"'


def headers_are_references(headers: dict[str, str], path: Path, faults: Faults) -> None:
    for name, value in headers.items():
        if patterns.header_is_credential(name) and not patterns.ENV_PLACEHOLDER.search(value):
            _literal_credential(f"header {clipped(name)}", (*path, name), faults)


def parameters_are_references(parameters: dict[str, str], path: Path, faults: Faults) -> None:
    for name, value in parameters.items():
        if patterns.parameter_is_credential(name) and not patterns.ENV_PLACEHOLDER.search(value):
            _literal_credential(f"query parameter {clipped(name)}", (*path, name), faults)


def _literal_credential(what: str, path: Path, faults: Faults) -> None:
    faults.soft(
        path,
        f"the {what} looks like a credential, so its value must contain an environment variable reference such as "
        "${NAME}, never a literal secret alone",
    )
