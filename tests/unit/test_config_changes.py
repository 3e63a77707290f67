from __future__ import annotations

from dataclasses import replace

from litehit.config_changes import config_changes, core_changes
from litehit.registry import InstanceConfig

CONFIG = InstanceConfig("a", "g", 8, 4, 100, False, 5 * 10**8, (1.0,))


def test_the_same_has_no_changes() -> None:
    assert config_changes(CONFIG, CONFIG) == ()


def test_each_setting_is_told_with_both_values_the_core_s_first() -> None:
    other = replace(
        CONFIG,
        group="h",
        block_size_tokens=16,
        trace_block_size_tokens=8,
        block_bytes=7,
        enable_prefix_hash=True,
        ttl_ns=0,
        capacity_gb=(-1.0,),
    )
    changes = config_changes(CONFIG, other)
    assert [str(change) for change in changes] == [
        "a has block_size_tokens 8 there and 16 now",
        "a has trace_block_size_tokens 4 there and 8 now",
        "a has enable_prefix_hash False there and True now",
        "a has ttl_seconds 0.5 there and 0 now",
        "a has block_bytes 100 there and 7 now",
        "a has capacity_gb [1.0] there and [-1.0] now",
        "a has group g there and h now",
    ]
    assert core_changes(CONFIG, other) == changes[:4]
