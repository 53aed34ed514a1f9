"""What can be done with many webhooks at once."""

from typing import Literal, get_args

Action = Literal["enable", "disable", "hold", "release", "tag", "untag", "move", "delete"]
ACTIONS: tuple[Action, ...] = get_args(Action)
