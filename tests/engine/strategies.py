"""What hypothesis draws for the engine's tests."""

from __future__ import annotations

from hypothesis import strategies as st

from workflows.engine.values import Json

#: Everything but NUL and half surrogates, which are refused.
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20)

#: Texts that are made to be mistaken for something an author wrote.
hostile_texts = st.lists(
    st.sampled_from(["${KEY}", "$${KEY}", "{input}", "{{ input }}", "{{", "}}", "$", "{", "}", "KEY", "s.x", " ", "é"]),
    max_size=8,
).map("".join)

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def json_values(texts: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Json]:
    """Any JSON value that may be stored."""
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=12,
    )
