"""The console's addresses: a table from paths to views."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from postern.surfaces.console import documentation
from postern.surfaces.console.assets import answer_asset
from postern.surfaces.console.views import incidents, picker
from postern.surfaces.console.views.access import sign_in
from postern.surfaces.console.views.history import beside, call, files, live, replays, sent, volume
from postern.surfaces.console.views.history import listing as history
from postern.surfaces.console.views.operations import engine, find, settings
from postern.surfaces.console.views.signatures import tester
from postern.surfaces.console.views.webhooks import (
    bin,
    creation,
    first_steps,
    many,
    schedule,
    send_again,
    test_call,
    webhook,
)
from postern.surfaces.console.views.webhooks import listing as webhooks
from postern.surfaces.console.views.webhooks import settings as own_settings
from postern.surfaces.console.visit import ViewFunction, route
from postern.usecases.runtime.gateway import Gateway

VIEWS: list[tuple[str, str, ViewFunction]] = [
    ("GET", "/webhooks", webhooks.listing),
    ("GET", "/webhooks/rows", webhooks.rows),
    ("GET", "/webhooks/choices", picker.choices),
    ("POST", "/webhooks/many/ask", many.ask),
    ("POST", "/webhooks/many", many.do),
    ("GET", "/webhooks/new", creation.ask),
    ("GET", "/webhooks/new/{answer}", creation.form),
    ("POST", "/webhooks/new/signed/find", creation.find),
    ("POST", "/webhooks/new/{answer}", creation.create),
    ("GET", "/webhooks/{webhook}/ready", creation.ready),
    ("GET", "/webhooks/{webhook}/steps", first_steps.show),
    ("GET", "/webhooks/{webhook}/starts", first_steps.starts),
    ("GET", "/webhooks/{webhook}", webhook.overview),
    ("POST", "/webhooks/{webhook}/test-call", test_call.send),
    ("GET", "/webhooks/{webhook}/calls", webhook.calls),
    ("GET", "/webhooks/{webhook}/rejected", webhook.rejected),
    ("POST", "/webhooks/{webhook}/rejected", webhook.admit_rejected),
    ("GET", "/webhooks/{webhook}/send-again", send_again.show),
    ("POST", "/webhooks/{webhook}/send-again", send_again.ask),
    ("POST", "/webhooks/{webhook}/send-again/access", send_again.save_access),
    ("GET", "/webhooks/{webhook}/settings", own_settings.show),
    ("POST", "/webhooks/{webhook}/settings", own_settings.store),
    ("GET", "/webhooks/{webhook}/settings/values", own_settings.preview),
    ("GET", "/webhooks/{webhook}/settings/key", own_settings.try_key),
    ("GET", "/webhooks/{webhook}/settings/rows", own_settings.row_choices),
    ("POST", "/webhooks/{webhook}/settings/tried", own_settings.try_rows),
    ("POST", "/webhooks/{webhook}/settings/secret", own_settings.save_secret),
    ("POST", "/webhooks/{webhook}/settings/reveal", own_settings.reveal),
    ("POST", "/webhooks/{webhook}/settings/preset", own_settings.take_preset_over),
    ("POST", "/webhooks/{webhook}/settings/promote", own_settings.promote),
    ("POST", "/webhooks/{webhook}/settings/adopt", own_settings.adopt),
    ("GET", "/bin", bin.show),
    ("POST", "/bin/restore", bin.restore_many),
    ("POST", "/bin/{webhook}/restore", bin.restore),
    ("POST", "/bin/{webhook}/delete", bin.delete),
    ("GET", "/live/stream", live.stream),
    ("GET", "/live/count", live.count),
    ("GET", "/calls", history.listing),
    ("GET", "/calls/export", history.export),
    ("GET", "/calls/count", history.count),
    ("POST", "/calls/views", history.save_view),
    ("POST", "/calls/views/{view}", history.rename_view),
    ("POST", "/calls/views/{view}/delete", history.delete_view),
    ("GET", "/find", find.show),
    ("GET", "/documentation", documentation.contents),
    ("GET", "/documentation/{page:path}", documentation.show),
    ("POST", "/calls/marked", history.do_with_marked),
    ("POST", "/calls/map", call.map_value),
    ("GET", "/calls/{invocation}", call.detail),
    ("GET", "/calls/{invocation}/sent", sent.part),
    ("GET", "/calls/{invocation}/runs", call.runs),
    ("GET", "/calls/{invocation}/body", files.body),
    ("GET", "/calls/{invocation}/call.json", files.whole),
    ("GET", "/calls/{invocation}/fixture", files.fixture),
    ("GET", "/calls/{invocation}/code/{language}", files.code),
    ("GET", "/calls/{invocation}/compare", beside.compare),
    ("GET", "/calls/{invocation}/edit", beside.edit),
    ("POST", "/calls/{invocation}/edit", beside.replay_edited),
    ("POST", "/calls/{invocation}/bookmark", beside.bookmark),
    ("POST", "/calls/{invocation}/notes", beside.note),
    ("POST", "/calls/{invocation}/notes/{note}/delete", beside.delete_note),
    ("GET", "/calls/{invocation}/workflow", call.begin_workflow),
    ("POST", "/calls/{invocation}/replay", call.replay),
    ("POST", "/calls/{invocation}/start-now", call.start_now),
    ("POST", "/calls/{invocation}/listener", call.replay_to_listener),
    ("POST", "/calls/{invocation}/fix", call.fix),
    ("POST", "/calls/{invocation}/admit", call.admit),
    ("GET", "/replays", replays.listing),
    ("POST", "/replays", replays.plan),
    ("GET", "/replays/{replay}", replays.show),
    ("POST", "/replays/{replay}/begin", replays.begin),
    ("POST", "/replays/{replay}/cancel", replays.cancel),
    ("GET", "/webhooks/{webhook}/schedule", schedule.show),
    ("GET", "/webhooks/{webhook}/schedule/next", schedule.preview),
    ("POST", "/webhooks/{webhook}/schedule", schedule.store),
    ("POST", "/webhooks/{webhook}/schedule/run", schedule.run_now),
    ("POST", "/webhooks/{webhook}/schedule/resume", schedule.resume),
    ("POST", "/webhooks/{webhook}/hold", webhooks.hold),
    ("POST", "/webhooks/{webhook}/release", webhooks.release),
    ("POST", "/webhooks/{webhook}/drop", webhooks.drop),
    ("GET", "/incidents", incidents.listing),
    ("GET", "/incidents/{incident}", incidents.show),
    ("POST", "/incidents/{incident}/{deed}", incidents.do),
    ("GET", "/volume", volume.show),
    ("GET", "/tester", tester.ask),
    ("POST", "/tester", tester.check),
    ("GET", "/workflows", engine.show),
    ("GET", "/workflows/beginning", engine.beginning),
    ("POST", "/workflows/record", engine.record),
    ("POST", "/workflows/record/stop", engine.stop_recording),
    ("POST", "/workflows/forget", engine.forget),
    ("GET", "/settings", settings.keys),
    ("POST", "/settings/keys", settings.make_key),
    ("POST", "/settings/keys/{key}/delete", settings.delete_key),
    ("GET", "/settings/users", settings.users),
    ("POST", "/settings/users", settings.add_user),
    ("POST", "/settings/users/{user}", settings.change_user),
    ("POST", "/settings/users/{user}/delete", settings.remove_user),
    ("GET", "/settings/sessions", settings.sessions),
    ("POST", "/settings/sessions/{session}/end", settings.end_session),
    ("GET", "/settings/channels", settings.channels),
    ("POST", "/settings/channels", settings.add_channel),
    ("POST", "/settings/channels/test", settings.test_channel),
    ("POST", "/settings/channels/{channel}/delete", settings.delete_channel),
    ("GET", "/settings/retention", settings.retained),
    ("GET", "/settings/engine", settings.engine),
    ("GET", "/settings/environment", settings.environment),
    ("GET", "/settings/audit", settings.log),
    ("GET", "/settings/connect", settings.connect),
    ("GET", "/settings/password", settings.password),
    ("POST", "/settings/password", settings.change_password),
    ("POST", "/webhooks/{webhook}/enable", webhooks.enable),
    ("POST", "/webhooks/{webhook}/disable", webhooks.disable),
    ("POST", "/webhooks/{webhook}/delete", webhooks.delete),
]


def console_routes(gateway: Gateway) -> list[BaseRoute]:
    async def home(_: Request) -> Response:
        return RedirectResponse("/webhooks", 303)

    async def favicon(_: Request) -> Response:
        return RedirectResponse("/static/mark.svg", 308)

    return [
        Route("/", home),
        Route("/favicon.ico", favicon),
        *sign_in.routes(gateway),
        *(route(gateway, method, path, view) for method, path, view in VIEWS),
        Route("/static/{path:path}", answer_asset),
    ]
