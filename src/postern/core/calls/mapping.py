"""From a payload to the trigger's four fields."""

from postern.core.calls.content import Payload
from postern.core.calls.paths import Path, as_text, parse_path, walk_members
from postern.core.deliveries.delivery import FIELD_NAMES

LONGEST_VALUE = 65_536


class Mapping:
    """Which value becomes which field. A path that leads nowhere leaves its field empty: the call is accepted
    all the same."""

    def __init__(self, paths: dict[str, str]) -> None:
        self._paths: list[tuple[str, str, Path]] = [
            (name, paths[name], parse_path(paths[name])) for name in FIELD_NAMES if paths.get(name)
        ]
        self._all_found = (
            f"{len(self._paths)} of {len(self._paths)} fields found" if self._paths else "no field is mapped"
        )

    def apply(self, payload: Payload) -> tuple[dict[str, str], str]:
        """The fields, and what to say in the trace."""
        fields: dict[str, str] = {}
        missing = []
        for name, text, path in self._paths:
            value = walk_members(payload.members, path)
            if value is None:
                missing.append(f"{name}: nothing at {text}")
            else:
                fields[name] = as_text(value)[:LONGEST_VALUE]
        return fields, "; ".join(missing) if missing else self._all_found
