"""Tools for webhooks: making and changing them, and holding what they start."""

from postern.core.access.accounts import Actor
from postern.surfaces.mcp import arguments as ask
from postern.surfaces.mcp import views
from postern.surfaces.mcp.table import tool
from postern.usecases.deliveries import holds
from postern.usecases.deliveries.views import Dropped, Hold, Released
from postern.usecases.history import payload_types, samples
from postern.usecases.history.views.requests import PayloadTypes
from postern.usecases.history.views.samples import NotRecording, Recording, Sample
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.schedules import schedules
from postern.usecases.schedules.views import ScheduleRun
from postern.usecases.webhooks import bin, listing, many, webhooks
from postern.usecases.webhooks.configuration import WebhookRequest
from postern.usecases.webhooks.many import ManyRequest
from postern.usecases.webhooks.views import Bin, Many, Webhook


@tool("List webhooks", "read", ask.ListWebhooks)
async def list_webhooks(gateway: Gateway, actor: Actor, asked: ask.ListWebhooks) -> views.WebhooksInShort:
    """The webhooks in short, newest first: id, name, URL, folder, tags, whether enabled, how callers prove themselves,
    how often called; total says how many match. Use it to find a webhook's id."""
    page = await listing.listing(
        gateway, actor, asked.limit, asked.cursor, asked.wanted(), asked.sort, asked.reverse
    )
    return views.WebhooksInShort(
        items=[views.webhook_in_short(one) for one in page.items],
        next_cursor=page.next_cursor,
        total=page.total,
        unreadable=page.unreadable,
    )


@tool("Show a webhook", "read", ask.OneWebhook)
async def show_webhook(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> Webhook:
    """Every setting of one webhook, its version, and of its secrets only whether they are set and when they
    last matched."""
    return await webhooks.show(gateway, actor, asked.webhook_id)


@tool("Create a webhook", "write", WebhookRequest, repeatable=False)
async def create_webhook(gateway: Gateway, actor: Actor, asked: WebhookRequest) -> Webhook:
    """Make a webhook. It is enabled at once and the answer holds the URL to give to the sender. Choose the
    authentication by who calls: a service that signs its webhooks: {"method": "hmac", "provider": …} (see
    list_providers); your own code or an automation tool: {"method": "token", "token": {"generate": true}};
    none is for testing only. Where the sender makes the secret and it is not known yet, {"generate": true}
    stands in for it: secretAwaited is true until it is set. The field mapping takes up to four values out of
    the JSON body by their path, like customer.email or items[0].sku, and hands them to the workflow."""
    return await webhooks.create(gateway, actor, asked)


@tool("Change a webhook", "write", ask.ChangeWebhook)
async def change_webhook(gateway: Gateway, actor: Actor, asked: ask.ChangeWebhook) -> Webhook:
    """Change some settings of a webhook; what is not named stays. A new main secret takes effect at once and
    calls with the old one are rejected: to rotate without rejecting any, set secondToken or secondSecret first
    and use promote_secret when the sender has switched. The answer is the webhook as it is now."""
    return await webhooks.change(gateway, actor, asked.webhook_id, asked.changes, asked.version)


@tool("Enable a webhook", "write", ask.OneVersion)
async def enable_webhook(gateway: Gateway, actor: Actor, asked: ask.OneVersion) -> views.WebhookInShort:
    """Accept calls again."""
    return views.webhook_in_short(
        await webhooks.switch(gateway, actor, asked.webhook_id, True, asked.version)
    )


@tool("Disable a webhook", "write", ask.OneVersion, destructive=True)
async def disable_webhook(gateway: Gateway, actor: Actor, asked: ask.OneVersion) -> views.WebhookInShort:
    """Reject every call with 403 until it is enabled again. Calls rejected meanwhile are recorded, and most
    senders do not repeat them for ever."""
    return views.webhook_in_short(
        await webhooks.switch(gateway, actor, asked.webhook_id, False, asked.version)
    )


@tool("Promote the second secret", "write", ask.OneVersion, destructive=True, repeatable=False)
async def promote_secret(gateway: Gateway, actor: Actor, asked: ask.OneVersion) -> Webhook:
    """End a rotation: the second secret becomes the main one and the former main secret is no longer
    accepted. Look at authentication.rotation in show_webhook first: wait until safeToPromote is true, or the
    sender's calls may be rejected."""
    return await webhooks.promote(gateway, actor, asked.webhook_id, asked.version)


@tool("Take an announced secret", "write", ask.AdoptSecret, destructive=True, repeatable=False)
async def adopt_secret(gateway: Gateway, actor: Actor, asked: ask.AdoptSecret) -> Webhook:
    """Take a secret that a sender (Notion, Asana) announced in its set-up handshake as the main one. Show the user
    authentication.announced of show_webhook first and ask whether they were setting the sender up just then: anybody can
    announce one."""
    return await webhooks.adopt(gateway, actor, asked.webhook_id, asked.invocation_id, asked.version)


@tool("Delete a webhook", "write", ask.OneVersion, destructive=True)
async def delete_webhook(gateway: Gateway, actor: Actor, asked: ask.OneVersion) -> views.Deleted:
    """Put a webhook into the bin: its URL answers 404, and restore_webhook has it back for seven days. Its history
    stays until retention takes it. To stop calls for a while use disable_webhook."""
    await webhooks.remove(gateway, actor, asked.webhook_id, asked.version)
    return views.Deleted(deleted=asked.webhook_id)


@tool("Change many webhooks", "write", ManyRequest, destructive=True)
async def change_many_webhooks(gateway: Gateway, actor: Actor, asked: ManyRequest) -> Many:
    """Do the same with many webhooks: enable, disable, hold, release, tag, untag, move (into a folder) or delete (into
    the bin). Name them in webhookIds, or give a filter as list_webhooks takes it; an empty filter is all of them. Ask
    with dryRun first, tell the user how many it is about, and repeat that number as expected. The answer names
    those with which it was not done, and why."""
    return await many.change(gateway, actor, asked)


@tool("List deleted webhooks", "read", ask.OnePage)
async def list_bin(gateway: Gateway, actor: Actor, asked: ask.OnePage) -> Bin:
    """The webhooks that were deleted in the last seven days, each with the time at which it is gone for good.
    Their URLs answer 404."""
    return await bin.listing(gateway, actor, asked.limit, asked.cursor)


@tool("Restore a deleted webhook", "write", ask.OneWebhook)
async def restore_webhook(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> views.WebhookInShort:
    """Take a webhook out of the bin, as it was: URL, settings, secrets. It serves calls again at once."""
    return views.webhook_in_short(await bin.restore(gateway, actor, asked.webhook_id))


@tool("Delete a webhook for good", "write", ask.OneWebhook, destructive=True)
async def delete_for_good(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> views.Deleted:
    """Take a deleted webhook out of the bin before its seven days are over: its settings and secrets cannot be had
    back. Only when the user wants them gone now."""
    await bin.delete_for_good(gateway, actor, asked.webhook_id)
    return views.Deleted(deleted=asked.webhook_id)


@tool("Hold a webhook's deliveries", "write", ask.OneVersion)
async def hold_webhook(gateway: Gateway, actor: Actor, asked: ask.OneVersion) -> Hold:
    """Go on accepting and recording calls, and start no workflow with them until release_webhook: for while a
    workflow is broken or being changed. The answer tells how many deliveries wait."""
    return await holds.hold(gateway, actor, asked.webhook_id, asked.version)


@tool("Release a webhook's deliveries", "write", ask.OneVersion)
async def release_webhook(gateway: Gateway, actor: Actor, asked: ask.OneVersion) -> Released:
    """End a hold: everything that waited is started, the oldest first. Workflows really run."""
    return await holds.release(gateway, actor, asked.webhook_id, asked.version)


@tool("Drop held deliveries", "write", ask.OneWebhook, destructive=True)
async def drop_held(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> Dropped:
    """Give up what waits under a hold: it will not be started, unless replayed one by one. The hold itself
    goes on."""
    return await holds.drop(gateway, actor, asked.webhook_id)


@tool("Run a schedule now", "write", ask.OneWebhook, repeatable=False)
async def run_schedule_now(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> ScheduleRun:
    """Fetch a scheduled webhook's source once, now, and say what came of it. What comes starts workflows as
    at any other time."""
    return await schedules.run_now(gateway, actor, asked.webhook_id)


@tool("Resume a paused schedule", "write", ask.OneWebhook)
async def resume_schedule(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> Webhook:
    """Let a schedule go on that has paused itself after too many failed runs (scheduleState in show_webhook
    says why)."""
    return await schedules.resume(gateway, actor, asked.webhook_id)


@tool("Record the next event", "write", ask.RecordEvents)
async def record_events(gateway: Gateway, actor: Actor, asked: ask.RecordEvents) -> Recording:
    """Keep the next accepted call of a webhook as its sample, so that show_sample can tell which variables a
    workflow gets."""
    return await samples.arm(gateway, actor, asked.webhook_id, asked.minutes * 60)


@tool("Stop recording", "write", ask.OneWebhook)
async def stop_recording(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> NotRecording:
    """Do not wait for the next event any more. A sample that was recorded stays."""
    return await samples.disarm(gateway, actor, asked.webhook_id)


@tool("Show the recorded event", "read", ask.OneWebhook, outside=("event", "variables"))
async def show_sample(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> Sample:
    """The recorded event of a webhook: each variable, its path for the field mapping, an example, and how to
    write it in a workflow."""
    return await samples.sample(gateway, actor, asked.webhook_id)


@tool("Forget the recorded event", "write", ask.OneWebhook, destructive=True)
async def forget_sample(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> views.Forgotten:
    """Delete a webhook's sample; it holds a whole payload, and retention leaves it alone."""
    await samples.forget(gateway, actor, asked.webhook_id)
    return views.Forgotten(forgotten=asked.webhook_id)


@tool("Show the types of a webhook's payload", "read", ask.OneWebhook, outside=("source",))
async def show_payload_types(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> PayloadTypes:
    """TypedDicts, as Python source, for what a webhook's payloads hold: made from its newest recorded calls, whose
    field names outside callers chose."""
    return await payload_types.payload_types(gateway, actor, asked.webhook_id)


@tool("Begin a workflow", "read", ask.NewWorkflow)
async def begin_workflow(gateway: Gateway, actor: Actor, asked: ask.NewWorkflow) -> views.Source:
    """Python source for a new workflow of the embedded engine that reacts to this webhook, typed after its
    recorded event. Nothing is written anywhere: hand it to whoever keeps the workflows."""
    return views.Source(source=await samples.new_workflow(gateway, actor, asked.name, asked.webhook_id))
