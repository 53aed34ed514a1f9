"""Writes anything into the columns in which a caller's bytes stand, as they came or written anew."""

import json
import random
from pathlib import Path

from support.stored import rows

COLUMNS = {
    ("invocations", "id"): "path query headers trace body method detail address",
    ("deliveries", "key"): "fields log error response_headers response_body",
    ("call_values", "invocation_id"): "value",
    ("edited_calls", "invocation_id"): "changed",
    ("samples", "webhook_id"): "trigger",
}
TEXTS = {"method", "detail", "address", "error"}
TYPES = (
    *("application/json", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/xml"),
    *(
        "text/plain;charset=utf-16",
        "multipart/form-data;boundary=" + "b" * 300,
        "\xff",
        "application/json;" * 50,
    ),
)
BODIES = (
    b"[" * 3000,
    b'{"a":"\\ud800"}',
    b"a=1&a=%&=",
    b"--x\r\n\r\n\0\r\n--x--",
    b"\x1f\x8b\x08",
    b'{"a":1e9999}',
)
JSONS = b' 5 null {} [[]] [["a"]] [{}] [["\\u0142","\\n"]] {"a":5} {"5":"a"} [5] [["a",1,null]] [{"at":"x"}]'.split(
    b" "
)


def write_anything(file: Path, seed: int) -> None:
    chance = random.Random(seed)
    for (table, key), columns in COLUMNS.items():
        for (one,) in rows(file, f"SELECT {key} FROM {table}"):
            for column in chance.sample(columns.split(), chance.randint(1, len(columns.split()))):
                rows(
                    file,
                    f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {key} = ?",
                    _anything(chance, column),
                    one,
                )


def _anything(chance: random.Random, column: str) -> object:
    if column in TEXTS:
        return chance.choice(["", "\0", "a\nb", "\u202e<b>", "\ufffd" * 80, "*"])
    if column == "headers" and chance.random() < 0.6:
        packed = [["content-encoding", chance.choice(["gzip", "br", "\xff"])]] * chance.randrange(2)
        return json.dumps([["content-type", chance.choice(TYPES)], *packed]).encode()
    return chance.choice([chance.randbytes(chance.randrange(60)), *(BODIES if column == "body" else JSONS)])
