"""JSON that is handed on as it was written. What has a fixed form is a type of its own instead."""

from typing import Any

Document = dict[str, Any]
"""Settings, a scheme or a trigger under the names that the API has for them."""

Patch = dict[str, Any]
"""A merge patch (RFC 7396) of settings: what it names is set, null goes back to the default."""

BodyChanges = dict[str, Any]
"""Values to set in a body, by their paths."""
