"""JSONata's paths, filters, constructors and groups, in time that grows with their size. Runs in the evaluator's child.

The library copies a list for each item that it adds to it, and bounds nothing while it builds.
"""

from __future__ import annotations

from typing import Any, Final

from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.utils import Utils

from workflows.adapters.jsonata_steps import meter, refuse_long_list
from workflows.adapters.jsonata_values import is_number

_JList: Final = Utils.JList


class Lists(Jsonata):  # type: ignore[misc]  # the library has no types
    """The nodes that make lists and mappings of others."""

    def evaluate_step(self, expr: Any, input: Any, environment: Any, last_step: bool) -> Any:
        """One step of a path."""
        if expr.type == "sort":
            result = self.evaluate_sort_expression(expr, input, environment)
            return result if expr.stages is None else self.evaluate_stages(expr.stages, result, environment)
        found = []
        for item in input:
            result = self.eval(expr, item, environment)
            for stage in expr.stages or ():
                result = self.evaluate_filter(stage.expr, result, environment)
            if result is not None:
                found.append(result)
        if last_step and len(found) == 1 and isinstance(found[0], list) and not Utils.is_sequence(found[0]):
            return found[0]
        flat = Utils.create_sequence()
        for result in found:
            if isinstance(result, list) and not (isinstance(result, _JList) and result.cons):
                meter.items(result)
                refuse_long_list(len(flat) + len(result))
                flat.extend(result)
            else:
                flat.append(result)
        return flat

    def evaluate_filter(self, predicate: Any, input: Any, environment: Any) -> Any:
        """`[...]` behind a value: a position, positions, or a condition."""
        tuples = isinstance(input, _JList) and input.tuple_stream
        items = [] if input is None else input if isinstance(input, list) else [input]
        kept = Utils.create_sequence()
        kept.tuple_stream = tuples
        if predicate.type == "number":
            at = _place(predicate.value, items)
            if not 0 <= at < len(items):
                return kept
            if isinstance(items[at], list):
                return items[at]
            kept.append(items[at])
            return kept
        for index, item in enumerate(items):
            frame = self.create_frame_from_tuple(environment, item) if tuples else environment
            result = self.eval(predicate, item["@"] if tuples else item, frame)
            if Utils.is_numeric(result):
                result = [result]
            if isinstance(result, list):
                meter.items(result, weight=4)
                if Utils.is_array_of_numbers(result):
                    kept.extend(item for place in result if _place(place, items) == index)
                    continue
            if self.boolize(result):
                kept.append(item)
        return kept

    def evaluate_unary(self, expr: Any, input: Any, environment: Any) -> Any:
        """`[...]` as a value; the other signs are the library's."""
        if expr.value != "[":
            return super().evaluate_unary(expr, input, environment)
        made = _JList()
        for part in expr.expressions:
            value = self.eval(part, input, environment)
            if isinstance(value, list) and part.value != "[":
                meter.items(value)
                refuse_long_list(len(made) + len(value))
                made.extend(value)
            elif value is not None:
                made.append(value)
        made.cons = bool(expr.consarray)
        return made

    def evaluate_wildcard(self, expr: Any, input: Any) -> Any:
        """`*`: the values of a mapping, those of its lists flattened."""
        if isinstance(input, _JList) and input.outer_wrapper and input:
            input = input[0]
        found = Utils.create_sequence()
        if isinstance(input, dict | list):
            meter.items(input)
            for value in input.values() if isinstance(input, dict) else input:
                if isinstance(value, list):
                    found.extend(self.flatten(value, None))
                    found.sequence = False  # as in JSONata, where appending a list makes a plain one
                else:
                    found.append(value)
                refuse_long_list(len(found))
        return found

    def flatten(self, arg: Any, flattened: list[Any] | None) -> list[Any]:
        """A list without lists in it."""
        flat = [] if flattened is None else flattened
        if not isinstance(arg, list):
            flat.append(arg)
            return flat
        meter.items(arg, weight=2)
        for item in arg:
            self.flatten(item, flat)
        refuse_long_list(len(flat))
        return flat

    def recurse_descendants(self, input: Any, results: list[Any]) -> None:
        """`**`: a value and all that is in it."""
        if not isinstance(input, list):
            results.append(input)
        if isinstance(input, list | dict):
            meter.items(input, weight=4)
            refuse_long_list(len(results))
            for item in input if isinstance(input, list) else input.values():
                self.recurse_descendants(item, results)

    def evaluate_group_expression(self, expr: Any, input: Any, environment: Any) -> Any:
        """`{key: value, ...}`: the items under each key together, and the key's value of them."""
        tuples = isinstance(input, _JList) and input.tuple_stream
        items = input if isinstance(input, list) else [input]
        made: dict[str, Any] = {}
        for key, (at, together) in self._groups(expr, items or [None], environment, tuples).items():
            frame = environment
            context: Any = together[0] if len(together) == 1 else _appended(together)
            if tuples:
                context = dict(self.reduce_tuple_stream(together))
                frame = self.create_frame_from_tuple(environment, {k: v for k, v in context.items() if k != "@"})
                context = context["@"]
            value = self.eval(expr.lhs_object[at][1], context, frame)
            if value is not None:
                made[key] = value
        return made

    def _groups(self, expr: Any, items: list[Any], environment: Any, tuples: bool) -> dict[str, tuple[int, list[Any]]]:
        """By key: which pair of the expression made it, and the items of that key in order."""
        groups: dict[str, tuple[int, list[Any]]] = {}
        for item in items:
            frame = self.create_frame_from_tuple(environment, item) if tuples else environment
            for at, pair in enumerate(expr.lhs_object):
                key = self.eval(pair[0], item["@"] if tuples else item, frame)
                if key is None:
                    continue
                if not isinstance(key, str):
                    raise JException("T1003", expr.position, key)
                if key not in groups:
                    groups[key] = (at, [item])
                elif groups[key][0] != at:
                    raise JException("D1009", expr.position, key)
                else:
                    groups[key][1].append(item)
        return groups


def _place(number: Any, items: list[Any]) -> int:
    """A position from the start; a negative one counts from the end, and a fraction is rounded down."""
    at = int(number // 1) if is_number(number) else 0
    return at + len(items) if at < 0 else at


def _appended(together: list[Any]) -> Any:
    """Items as `$append` would join them one after the other: lists among them are opened."""
    joined = _JList()
    for item in together:
        if isinstance(item, list):
            meter.items(item)
            refuse_long_list(len(joined) + len(item))
            joined.extend(item)
        else:
            joined.append(item)
    return joined


def spread(value: Any) -> Any:
    """`$spread`: a mapping for each entry of a mapping, or of each in a list."""
    if isinstance(value, list):
        made = _JList()
        meter.items(value)
        for item in value:
            parts = spread(item)
            made.extend(parts) if isinstance(parts, list) else made.append(parts)
            refuse_long_list(len(made))
        return made
    if isinstance(value, dict):
        meter.items(value, weight=8)
        return Utils.create_sequence_from_iter({key: item} for key, item in value.items())
    return value


def keys(value: Any) -> Any:
    """`$keys`: each once, of a mapping or of all the mappings in a list."""
    found: dict[str, None] = {}
    _collect_keys(value, found)
    return Utils.create_sequence_from_iter(found)


def _collect_keys(value: Any, found: dict[str, None]) -> None:
    if isinstance(value, list):
        meter.items(value, weight=4)
        for item in value:
            _collect_keys(item, found)
    elif isinstance(value, dict):
        meter.items(value)
        found.update(dict.fromkeys(value))


def merge(mappings: Any) -> Any:
    """`$merge`: later entries win."""
    if mappings is None:
        return None
    made: dict[str, Any] = {}
    for mapping in mappings:
        meter.items(mapping)
        made.update(mapping)
    return made


def zipped(*lists: Any) -> list[Any]:
    """`$zip`, as long as the shortest list."""
    if any(items is None for items in lists):
        return []
    meter.charge(min(len(items) for items in lists) * len(lists) // 2)
    return [list(items) for items in zip(*lists, strict=False)]


def appended(first: Any, second: Any) -> Any:
    """`$append`: a new list, bounded."""
    if first is None or second is None:
        return second if first is None else first
    made = _JList(first if isinstance(first, list) else [first])
    added = second if isinstance(second, list) else [second]
    meter.charge((len(made) + len(added)) // 8)
    refuse_long_list(len(made) + len(added))
    made.extend(added)
    return made
