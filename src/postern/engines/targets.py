"""What an engine is to start for a trigger, where the operator says which workflows there are."""

from collections.abc import Sequence

from msgspec import Struct

from postern.core.deliveries.delivery import Trigger, Workflow

WORKFLOW = "Webhook Trigger"


class Target(Struct, frozen=True):
    """A workflow to start for every trigger, or for one webhook's only."""

    workflow: str = WORKFLOW
    queue: str = "postern"
    webhook_id: str | None = None

    def wants(self, trigger: Trigger) -> bool:
        return self.webhook_id in (None, trigger.webhook_id)

    def workflow_id(self, key: str) -> str:
        """The delivery's key; other workflows of the same delivery append their own name."""
        return key if self.workflow == WORKFLOW else f"{key}/{self.workflow}"

    def shown(self, where: str) -> Workflow:
        return Workflow(self.workflow, (self.webhook_id,) if self.webhook_id else (), where)


def read_targets(text: str, default: Target) -> tuple[Target, ...]:
    """``Webhook Trigger@postern, Refund@refunds#wh_1``: workflow, queue, and the one webhook it is for. The
    last two may be left out."""
    targets = []
    for part in text.split(","):
        if part.strip():
            rest, _, webhook_id = part.partition("#")
            workflow, _, queue = rest.partition("@")
            if not workflow.strip():
                raise ValueError(f"{part.strip()!r} names no workflow; write Workflow@queue")
            targets.append(
                Target(workflow.strip(), queue.strip() or default.queue, webhook_id.strip() or None)
            )
    return tuple(targets) or (default,)


def checked(targets: Sequence[Target]) -> tuple[Target, ...]:
    """``ValueError`` where a trigger would be sent to the same workflow twice."""
    names = [(target.workflow, target.webhook_id) for target in targets]
    if len(set(names)) < len(names) or any(
        (workflow, None) in names for workflow, webhook_id in names if webhook_id
    ):
        raise ValueError("two targets would start the same workflow for one webhook")
    return tuple(targets)
