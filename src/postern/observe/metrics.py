"""The metrics, as Prometheus reads them."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from postern.observe.calls import SECONDS, call_counts

REGISTRY = CollectorRegistry()


_counter, _gauge = partial(Counter, registry=REGISTRY), partial(Gauge, registry=REGISTRY)


class Numbers:
    """The metrics that are counted where something happens."""

    unknown_codes = _counter("postern_unknown_short_codes", "Calls to short codes that do not exist.")
    not_stored = _counter("postern_not_stored", "Calls answered 503 because they could not be stored.")
    writer_waiting = _gauge(
        "postern_writer_waiting",
        "Writes that are not on disk yet: under way, or gathered for the next commit.",
    )
    deliveries_waiting = _gauge(
        "postern_deliveries_waiting", "Deliveries that wait to be started (counted up to 10,000)."
    )
    oldest_due_seconds = _gauge(
        "postern_oldest_due_seconds",
        "Seconds since the oldest waiting delivery was due, also if it was tried without success.",
    )
    deliveries_lost = _gauge(
        "postern_deliveries_lost",
        "Started deliveries that the engine does not know and nobody has replayed (counted up to 1,000).",
    )
    schedules_paused = _gauge(
        "postern_schedules_paused", "Schedules that have paused themselves after too many failed runs."
    )
    ready = _gauge(
        "postern_ready",
        "1 while this part is well, else 0: store (calls can be stored), webhooks (each is served, changes are followed), engine (the embedded engine can start).",
        ["part"],
    )
    told = _counter(
        "postern_incidents_told",
        "Messages about incidents, by channel and outcome: told, failed (tried again), given up.",
        ["channel", "outcome"],
    )
    engine_starts = _counter(
        "postern_engine_starts", "Starts that the engine was asked for, by outcome.", ["engine", "outcome"]
    )
    runs_ended = _counter(
        "postern_runs_ended",
        "Deliveries whose runs have all ended, by their end, if the engine reports it.",
        ["state"],
    )
    engine_start_seconds = Histogram(
        "postern_engine_start_seconds",
        "Seconds until the engine took a trigger.",
        buckets=SECONDS,
        registry=REGISTRY,
    )


@cache
def counter_of_starts(engine: str, outcome: str) -> Counter:
    """Looked up once: to find it by its labels costs more than to count."""
    return Numbers.engine_starts.labels(engine, outcome)


@cache
def counter_of_ends(state: str) -> Counter:
    return Numbers.runs_ended.labels(state)


class _Calls(Collector):
    """`call_counts`, put into the form of the metrics when somebody asks for them."""

    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "postern_calls", "Calls by webhook and outcome.", labels=["webhook", "outcome", "code"]
        )
        for key, count in call_counts.calls.items():
            calls.add_metric(key, count)
        yield calls
        seconds = HistogramMetricFamily(
            "postern_answer_seconds", "Seconds from receiving a call to its answer.", labels=["kind"]
        )
        for waited, kind in ((False, "at once"), (True, "waited for the workflow")):
            bounds = [*map(str, SECONDS), "+Inf"]
            seconds.add_metric(
                [kind],
                list(zip(bounds, accumulate(call_counts.within[waited]), strict=True)),
                call_counts.seconds[waited],
            )
        yield seconds


REGISTRY.register(_Calls())


def own_numbers() -> str:
    return generate_latest(REGISTRY).decode()
