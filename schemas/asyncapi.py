"""The AsyncAPI 3.0 description of the three topics. Its payloads are the schema files beside it."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from schemas.dead_letter import FORMAT_HEADER, INSTANCE_HEADER, SOURCE_HEADER

_SCHEMA_FORMAT = "application/schema+json;version=2020-12"
_KAFKA_BINDING = "0.5.0"
_INSTANCE_KEY = {"type": "string", "description": "instance id, UTF-8"}


def asyncapi_document(topics: tuple[str, str, str]) -> dict[str, Any]:
    """Topics, keys, headers and payloads.

    Args:
        topics: names of the requests, facts and dead-letters topic.
    """
    requests_topic, facts_topic, dead_letters_topic = topics
    channels = {
        "requests": _channel(
            requests_topic,
            "One request a record, or the registration of an instance, which applies from there on. The key keeps an "
            "instance on one partition, which keeps its order.",
            "requestEvent",
        ),
        "facts": _channel(
            facts_topic,
            "What each request says about every capacity; partition p holds those of requests partition p, in order.",
            "fact",
        ),
        "deadLetters": _channel(
            dead_letters_topic,
            "Records that could not become a fact, whole, on the partition number they came from.",
            "deadLetter",
        ),
    }
    messages = {
        "requestEvent": _message(
            "Request event",
            key=_INSTANCE_KEY,
            payload=_file("request-event.schema.json"),
            headers={
                "type": "object",
                "properties": {
                    FORMAT_HEADER: {
                        "type": "string",
                        "description": "another format that the value is of, such as mooncake; absent: the topic's",
                    },
                    INSTANCE_HEADER: {
                        "type": "string",
                        "description": "the instance, whatever the value states or a template makes of it; empty: "
                        "its publisher found none, and the record becomes a dead letter",
                    },
                },
            },
        ),
        "fact": _message(
            "Fact",
            key=_INSTANCE_KEY,
            payload=_file("fact.schema.json"),
            headers={
                "type": "object",
                "properties": {
                    SOURCE_HEADER: {"type": "string", "description": "<topic>/<partition>/<offset> of the request"}
                },
                "required": [SOURCE_HEADER],
            },
        ),
        "deadLetter": _message(
            "Dead letter",
            key={"description": "the original key"},
            payload={"description": "the original bytes"},
            headers=_file("dead-letter-headers.schema.json"),
        ),
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "LiteHit",
            "version": version("litehit"),
            "description": "Exact KV-cache prefix hit rates at any capacity, from a topic of request events.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": {
            "receiveRequests": _operation("receive", "requests"),
            "sendFacts": _operation("send", "facts"),
            "sendDeadLetters": _operation("send", "deadLetters"),
        },
        "components": {"messages": messages},
    }


def _channel(topic: str, description: str, message: str) -> dict[str, Any]:
    return {
        "address": topic,
        "description": description,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
        "bindings": {"kafka": {"topic": topic, "bindingVersion": _KAFKA_BINDING}},
    }


def _message(
    title: str, *, key: dict[str, Any], payload: dict[str, Any], headers: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "title": title,
        "payload": payload,
        **({"headers": headers} if headers else {}),
        "bindings": {"kafka": {"key": key, "bindingVersion": _KAFKA_BINDING}},
    }


def _operation(action: str, channel: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}


def _file(name: str) -> dict[str, Any]:
    return {"schemaFormat": _SCHEMA_FORMAT, "schema": {"$ref": f"./{name}"}}
