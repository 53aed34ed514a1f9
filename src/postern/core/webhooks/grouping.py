"""Tags and folders, with which owners put their webhooks in order. A webhook has many tags and one folder at most."""

from collections.abc import Iterable

from postern.core.visible import on_one_line

LONGEST_TAG = 40
MOST_TAGS = 20
LONGEST_FOLDER = 200
NO_FOLDER = "-"
"""Asked for instead of a folder: the webhooks that are in none."""


def tag_problem(tag: str) -> str | None:
    text = tag.strip()
    if not 1 <= len(text) <= LONGEST_TAG or not on_one_line(text) or "," in text:
        return f"a tag is a text of 1 to {LONGEST_TAG} characters on one line, without a comma"
    return None


def distinct(tags: Iterable[str]) -> list[str]:
    """Each tag once, as it was first written. Tags that differ only in capitals are one."""
    written: dict[str, str] = {}
    for tag in tags:
        written.setdefault(tag.strip().casefold(), tag.strip())
    return list(written.values())


def folder_of(written: str) -> str | None:
    """``Shops/Europe`` is inside ``Shops``. Returns None if nothing is written, and raises ``ValueError``."""
    parts = [part.strip() for part in written.strip().strip("/").split("/")]
    if parts == [""]:
        return None
    folder = "/".join(parts)
    if folder == NO_FOLDER:
        raise ValueError(f"{NO_FOLDER} stands for no folder, where one is asked for")
    if not all(map(on_one_line, parts)) or len(folder) > LONGEST_FOLDER:
        raise ValueError(
            f"a folder is a name, or names divided by /, of at most {LONGEST_FOLDER} characters on one line"
        )
    return folder


def is_inside(folder: str | None, parent: str) -> bool:
    here, there = (folder or "").casefold(), parent.casefold()
    return here == there or here.startswith(there + "/")
