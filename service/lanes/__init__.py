"""The role `lanes`: from the requests topic to the facts topic, one ordered lane a partition."""
