"""A template gives different values different ids, and refuses to be one that could not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.errors import OptionError
from service.instance_template import InstanceTemplate

SEPARATORS = ("/", "::", "-v", "|", "·", " ")


def render(template: str, **values: str) -> str:
    return InstanceTemplate.parse(template).render(lambda field: values.get(field.name, field.default or ""))


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("{model}", {"model": "meta/llama %"}, "meta/llama %"),
        ("{model}/{tenant}", {"model": "llama", "tenant": "acme"}, "llama/acme"),
        ("{model}/{tenant}", {"model": "meta/llama", "tenant": "50%"}, "meta%2Fllama/50%25"),
        ("{model}::{lora|none}", {"model": "a:b"}, "a%3Ab::none"),
        ("{model}/{lora|}", {"model": "a"}, "a/"),
        ("prod-{model}/{tenant}-x", {"model": "a-b", "tenant": "c"}, "prod-a-b/c-x"),
        ("{{{model}}}", {"model": "a"}, "{a}"),
        ("{a}·{b}", {"a": "·", "b": "x"}, "%C2%B7·x"),
        ("{a}/{a}", {"a": "x"}, "x/x"),
        ("{a|x|y}", {}, "x|y"),
    ],
)
def test_an_id_is_text_and_values(template: str, values: dict[str, str], expected: str) -> None:
    assert render(template, **values) == expected


def test_a_dot_leads_into_an_object() -> None:
    (field,) = InstanceTemplate.parse("{metadata.user.id|none}").fields
    assert (field.path, field.default, field.name) == (("metadata", "user", "id"), "none", "metadata.user.id")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("", "names no field"),
        ("llama", "names no field"),
        ("{{model}}", "names no field"),
        ("{model", "has a { by itself"),
        ("model}", "has a } by itself"),
        ("{model}/{ten{ant}}", "has a { by itself"),
        ("{}", "has a field {} without a name"),
        ("{.a}", "has a field {.a} without a name"),
        ("{a..b}", "has a field {a..b} without a name"),
        ("{a}{b}", "needs a text between {a} and {b}"),
        ("{a}x{b}", "needs a text between {a} and {b}"),
        ("{a}/{b}2{c}", "needs a text between {b} and {c}"),
        ("{a}%{b}", "needs a text between {a} and {b}"),
        ("{a|}", "would give an empty id"),
    ],
)
def test_what_is_no_template_is_refused(template: str, why: str) -> None:
    with pytest.raises(OptionError, match=re.escape(why)):
        InstanceTemplate.parse(template)


value = st.text(alphabet=st.sampled_from(list("ab/:%-v2F|· 5C3B7")), max_size=6)
values = st.tuples(value, value, value)


@given(one=values, other=values, between=st.tuples(st.sampled_from(SEPARATORS), st.sampled_from(SEPARATORS)))
def test_different_values_have_different_ids(
    one: tuple[str, ...], other: tuple[str, ...], between: tuple[str, str]
) -> None:
    template = "pre/{a}" + between[0] + "{b}" + between[1] + "{c}/post"
    ids = [render(template, **dict(zip("abc", each, strict=True))) for each in (one, other)]
    assert (ids[0] == ids[1]) == (one == other)
