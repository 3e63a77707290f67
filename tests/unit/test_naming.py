"""The instance of a record: what its publisher has told, else a template of its fields, else what it states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.dead_letter import Reason
from service import formats
from service.format_names import LINE_FORMATS, FormatName
from service.formats.base import FormatError, RecordContext
from service.formats.naming import Naming
from service.formats.native_protobuf import EVENT_MESSAGE
from service.instance_template import InstanceTemplate
from tests.format_samples import SAMPLES, Plain, dynamo, weka

CONTEXT = RecordContext("default", 7, 99)
FIELDS = {"model": "llama", "metadata": {"tenant": "acme", "n": 3}}


def naming(template: str) -> Naming:
    return Naming(InstanceTemplate.parse(template))


def instance(name: str, template: str, record: Mapping[str, Any] | bytes, context: RecordContext = CONTEXT) -> str:
    encoded = record if isinstance(record, bytes) else json.dumps(record).encode()
    request = formats.get(name, naming(template)).parse(encoded, context)
    assert request is not None
    return request.instance_id


def sample(name: str, **fields: Any) -> dict[str, Any]:
    of = SAMPLES[FormatName(name)]
    return of.record(Plain([1, 2], 0, 5, of.block)) | fields


every_format = pytest.mark.parametrize("name", LINE_FORMATS)


@every_format
def test_an_id_is_built_in_every_format(name: str) -> None:
    assert instance(name, "{model}/{metadata.tenant}", sample(name, **FIELDS)) == "llama/acme"
    assert instance(name, "{metadata.n}/{lora|none}", sample(name, **FIELDS)) == "3/none"


@every_format
def test_the_slow_reader_builds_the_same_id(name: str) -> None:
    record = sample(name, **FIELDS, other="\\ a record that the fast path leaves")
    assert instance(name, "{model}/{metadata.tenant}", record) == "llama/acme"


@every_format
def test_what_the_publisher_told_goes_first(name: str) -> None:
    assert instance(name, "{nothing}", sample(name), CONTEXT._replace(named="told")) == "told"
    request = formats.get(name).parse(json.dumps(sample(name)).encode(), CONTEXT._replace(named="told"))
    assert request is not None
    assert request.instance_id == "told"


@every_format
@pytest.mark.parametrize(
    ("fields", "reason", "words"),
    [
        ({}, Reason.INSTANCE_FIELD_MISSING, "metadata is absent or null, and the instance is made of it ({metadata."),
        ({"metadata": None}, Reason.INSTANCE_FIELD_MISSING, "send it (publish leaves it out unless it has the t"),
        ({"metadata": {}}, Reason.INSTANCE_FIELD_MISSING, "metadata.tenant is absent or null"),
        ({"metadata": {"tenant": None}}, Reason.INSTANCE_FIELD_MISSING, "metadata.tenant is absent or null"),
        ({"metadata": {"tenant": ""}}, Reason.INSTANCE_FIELD_MISSING, "metadata.tenant is empty, and the instance"),
        ({"metadata": "acme"}, Reason.INVALID_FIELD, "metadata = 'acme' is refused; send an object"),
        ({"metadata": {"tenant": True}}, Reason.INVALID_FIELD, "metadata.tenant = True is refused, since the instance"),
        ({"metadata": {"tenant": ["a"]}}, Reason.INVALID_FIELD, "metadata.tenant = ['a'] is refused"),
        ({"metadata": {"tenant": {"a": 1}}}, Reason.INVALID_FIELD, "metadata.tenant = {'a': 1} is refused"),
    ],
)
def test_a_field_that_names_nothing_is_told(name: str, fields: dict[str, Any], reason: Reason, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        instance(name, "{metadata.tenant}", sample(name, **fields))
    assert caught.value.reason is reason
    assert words in str(caught.value)


@every_format
def test_half_a_surrogate_pair_names_no_instance(name: str) -> None:
    with pytest.raises(FormatError, match=r"'\\ud800' is refused|unexpected end of hex escape"):
        instance(name, "{model}", sample(name, model="\ud800"))


@every_format
def test_numbers_are_taken_as_they_are_written(name: str) -> None:
    for text, expected in (("1", "1"), ("-7", "-7"), ("1.50", "1.50"), ("1e3", "1e3"), ('"1"', "1")):
        record = json.dumps(sample(name, salt="@@")).replace('"@@"', text).encode()
        assert instance(name, "s{salt}", record) == f"s{expected}"


@every_format
def test_keys_name_no_instance(name: str) -> None:
    path = SAMPLES[FormatName(name)].keys
    if name == FormatName.WEKA:
        path = path[2:]
    with pytest.raises(FormatError, match=r"is refused, since the instance is made of it"):
        instance(name, f"{{{'.'.join(path)}}}", sample(name))


def test_a_field_of_the_format_itself_may_be_named() -> None:
    assert instance("tair", "{instance_id}/{query_type}", sample("tair", instance_id="i")) == "i/prefix_match"
    assert instance("bailian", "{type}", sample("bailian")) == "text"
    assert instance("dynamo", "{request.model}", sample("dynamo")) == "m"


def test_dynamos_fields_are_those_of_the_event() -> None:
    wrapped = {"timestamp": 1, "event": dynamo(Plain([1], 0, 5, 16)) | FIELDS}
    assert instance("dynamo", "{request.model}/{metadata.tenant}", wrapped) == "m/acme"


def test_a_sessions_fields_are_those_of_the_request_and_then_its_own() -> None:
    session = weka(Plain([1], 0, 5, 64)) | {"model": "outer", "tenant": "acme"}
    assert instance("weka", "{model}/{tenant}", session) == "outer/acme"
    session["requests"][0]["model"] = "inner"
    assert instance("weka", "{model}/{tenant}", session) == "inner/acme"


def test_a_binary_event_carries_the_fields_by_name() -> None:
    message = EVENT_MESSAGE(instance_id="i", timestamp_ns=5, fields={"model": "llama", "metadata.tenant": "a/b"})
    record = message.SerializeToString()
    template = "{instance_id}/{model}/{metadata.tenant}/{lora|none}"
    assert instance("native-protobuf", template, record) == "i/llama/a%2Fb/none"
    with pytest.raises(FormatError) as caught:
        instance("native-protobuf", "{metadata.user}", record)
    assert caught.value.reason is Reason.INSTANCE_FIELD_MISSING
    with pytest.raises(FormatError, match=r"metadata = .* is refused"):
        instance("native-protobuf", "{metadata}", record)


json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**65) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
)


@given(
    name=st.sampled_from(LINE_FORMATS),
    fields=st.dictionaries(st.sampled_from(["a", "b", "a.b"]), json_value, max_size=3),
    template=st.sampled_from(["{a}", "{a.b}", "{a.b.c|none}", "{a|x}/{b}", "{a.b}/{a.c}", "{a}/{a.b}"]),
)
def test_fast_and_slow_readers_agree(name: str, fields: dict[str, Any], template: str) -> None:
    def outcome(record: Mapping[str, Any]) -> str:
        try:
            return instance(name, template, json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        except FormatError as error:
            return f"{error.reason}: {error}"

    assert outcome(sample(name, **fields)) == outcome(sample(name, **fields, slow="\\"))
