"""Reads and writes the YAML of `postern apply` and `export`. It is loaded late: few commands need it."""

import sys
from pathlib import Path
from typing import Any

import yaml

from postern.surfaces.cli.files import in_words, unicode_of
from postern.surfaces.cli.run import end
from postern.usecases.answers import as_json


def written(document: Any) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    return text


class _Loader(yaml.SafeLoader):
    """Takes no aliases, because nine lines of them can stand for billions, and no name twice in one mapping,
    because the first value would be lost without a word."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call] # PyYAML has no types here
            raise yaml.composer.ComposerError(None, None, "aliases are not taken; write it out", mark)
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode):
            node.value = _whole_characters(node.value)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.composer.ComposerError(None, None, "a name stands twice", key.start_mark)
                seen.add(key.value)
        return node


def _whole_characters(text: str) -> str:
    """Joins the two halves as which JSON writes an emoji. A half alone stays."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def read(source: str) -> Any:
    file = "standard input" if source == "-" else source
    try:
        with in_words(file):
            text = unicode_of(sys.stdin.read() if source == "-" else Path(source).read_text(), file)
        document = yaml.load(text, _Loader)
    except RecursionError:
        end(f"{file} is nested too deeply")
    except yaml.MarkedYAMLError as error:
        # Its own text quotes the line, and a secret may stand there.
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        end(f"{file}{where}: this is not YAML: {error.problem}")
    except yaml.YAMLError:
        end(f"{file} is not YAML")
    except (ValueError, LookupError, AttributeError, OverflowError):  # of PyYAML's readers of values
        end(f"{file} holds a number, a date, a character or a tagged value that is none")
    try:
        as_json(document)
    except (NotImplementedError, UnicodeEncodeError):
        end(f"{file} holds half a character, or a name that is no text (true, null); write it in quotes")
    return document
