"""What the tools ask for. Each is a tool's input schema, so the descriptions are written for a model."""

from typing import Annotated, Literal

from pydantic import Field

from postern.core.deliveries.replay import Values
from postern.core.documents import BodyChanges, Patch
from postern.core.signatures.making import Wrong
from postern.core.webhooks.listing import Sort
from postern.usecases.history.code import Language
from postern.usecases.history.filters import FilterRequest as CallFilter
from postern.usecases.history.marks import NoteText
from postern.usecases.shapes import WHOLE, Shape
from postern.usecases.webhooks.configuration import FieldMapping
from postern.usecases.webhooks.listing import FilterRequest as WebhookFilter

WebhookId = Annotated[
    str, Field(description="The webhook's id, like wh_…; list_webhooks tells it.", max_length=80)
]
InvocationId = Annotated[
    str, Field(description="The invocation's id, like inv_…; search_history tells it.", max_length=80)
]
Version = Annotated[
    Annotated[int, WHOLE] | None,
    Field(
        description="The version you have read. When it has changed meanwhile the call is refused, so that nobody's change is lost."
    ),
]
Limit = Annotated[int, Field(ge=1, le=50), WHOLE]
Cursor = Annotated[str | None, Field(description="nextCursor of the page before.", max_length=200)]


class Nothing(Shape):
    """No arguments."""


class OneWebhook(Shape):
    webhook_id: WebhookId


class OneVersion(Shape):
    webhook_id: WebhookId
    version: Version = None


class AdoptSecret(OneVersion):
    invocation_id: Annotated[
        str | None,
        Field(
            description="The call that announced it. Needed where callers announced different ones.",
            max_length=80,
        ),
    ] = None


class OneInvocation(Shape):
    invocation_id: InvocationId


class CompareInvocations(OneInvocation):
    to: Annotated[
        str | None,
        Field(
            description="The other call's id; left out, the last call to the same webhook before it that went well.",
            max_length=80,
        ),
    ] = None


class NoteInvocation(OneInvocation):
    text: Annotated[NoteText, Field(description="What to write.")]


class DeleteNote(OneInvocation):
    note_id: Annotated[str, Field(description="The note's id, as show_invocation tells it.", max_length=80)]


class ReplayEdited(OneInvocation):
    body: Annotated[
        str | None, Field(description="A body in the place of the recorded one.", max_length=1_000_000)
    ] = None
    values: Annotated[
        dict[str, str] | None,
        Field(description='Fields to be set by hand: {"fieldOne": "1002"}.', max_length=4),
    ] = None
    fields: Annotated[
        Values,
        Field(
            description="The other fields as the mapping finds them in the body, or as they were recorded."
        ),
    ] = "current"


class AsCode(OneInvocation):
    language: Annotated[Language, Field(description="What it is to be pasted into.")] = "curl"


class ReplayInvocation(OneInvocation):
    fields: Annotated[
        Values,
        Field(
            description="The four values as they were recorded when the call was first started, or as the field mapping finds them now."
        ),
    ] = "recorded"


ListenerId = Annotated[
    str, Field(description="The listener's id, like lsn_…; list_listeners tells it.", max_length=80)
]


class OneListener(Shape):
    listener_id: ListenerId


class ReplayToListener(OneInvocation):
    listener_id: ListenerId


class ListWebhooks(WebhookFilter):
    sort: Annotated[
        Sort,
        Field(
            description="created: the newest first; failing: those with most trouble first; last_day: by calls."
        ),
    ] = "created"
    reverse: bool = False
    limit: Limit = 20
    cursor: Cursor = None


class ChangeWebhook(Shape):
    webhook_id: WebhookId
    changes: Annotated[
        Patch,
        Field(
            description="A merge patch over the settings that show_webhook tells, in the shape of create_webhook: only what is to change; "
            'null removes a setting. For example {"fieldMapping": {"fieldTwo": "customer.email"}}. Secrets that are not named stay.'
        ),
    ]
    version: Version = None


class SearchHistory(CallFilter):
    limit: Limit = 20
    cursor: Cursor = None


class CountHistory(CallFilter):
    """Which calls to count: every part that is given must hold."""


class PlanReplay(CallFilter):
    """Which calls to replay, accepted ones and those admitted later: every part that is given must hold."""

    include_completed: Annotated[
        bool, Field(description="Also calls whose workflow has completed. They are left out otherwise.")
    ] = False


class OneReplay(Shape):
    replay_id: Annotated[
        str, Field(description="The replay's id, like rpl_…; plan_replay tells it.", max_length=80)
    ]


class RunReplay(OneReplay):
    fields: Annotated[
        Values,
        Field(
            description="The four values of each call as they were recorded when it was first started, or as the field mapping finds them now."
        ),
    ] = "recorded"


class OnePage(Shape):
    limit: Limit = 20
    cursor: Cursor = None


class CallVolume(Shape):
    webhook_id: Annotated[
        str | None, Field(description="One webhook's calls; all webhooks' when left out.", max_length=80)
    ] = None
    span: Literal["hour", "day", "week", "month"] = "day"


class OneProvider(Shape):
    provider: Annotated[
        str,
        Field(
            description="A provider's name, as list_providers tells it, like shopify or generic.",
            max_length=80,
        ),
    ]


class PreviewMapping(Shape):
    invocation_id: InvocationId
    field_mapping: FieldMapping


class ProposeProvider(Shape):
    description: Annotated[
        str | None, Field(description="What is known of the sender: names, products.", max_length=500)
    ] = None
    invocation_id: Annotated[
        str | None, Field(description="Or a recorded call that it made.", max_length=80)
    ] = None


class ApplyFix(Shape):
    invocation_id: InvocationId
    number: Annotated[
        int, Field(description="Its place in wouldVerifyIf, the first is 0.", ge=0, le=100), WHOLE
    ]


class ManyInvocations(Shape):
    invocation_ids: Annotated[
        list[str],
        Field(description="Their ids, as recheck_rejected tells them.", min_length=1, max_length=1000),
    ]


class ListRuns(Shape):
    limit: Limit = 20
    delivery_key: Annotated[
        str | None, Field(description="Only the runs of this delivery.", max_length=80)
    ] = None


class RecordEvents(Shape):
    webhook_id: WebhookId
    minutes: Annotated[float, Field(description="How long to wait for it.", gt=0, le=1440)] = 10


class NewWorkflow(Shape):
    webhook_id: WebhookId
    name: Annotated[
        str, Field(description="What to call it, like order look-up.", min_length=1, max_length=80)
    ]


class SendTestCall(Shape):
    webhook_id: WebhookId
    event: Annotated[
        str | None,
        Field(description="One of list_test_calls. Without it the first.", max_length=200),
    ] = None
    body: Annotated[
        str | None,
        Field(description="A body in the place of the sample's.", max_length=1_000_000),
    ] = None
    changes: Annotated[
        BodyChanges,
        Field(description='Values to set in the body, by their paths: {"data.id": 7}.', max_length=50),
    ] = {}
    wrong: Annotated[
        Wrong | None,
        Field(
            description="Broken in this way: signed with another secret, another body than the signed one, signed too long ago, "
            "without its signature or token."
        ),
    ] = None
