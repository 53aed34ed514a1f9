"""What the site has that the pages in the repository are not: the README as its first page, links that leave `docs/`,
and `llms.txt`."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
MARKED = re.compile(r"^```(sh|bash) .*$", re.MULTILINE)
"""What a fence tells the tests."""


def on_files(files: Files, config: Any) -> Files:
    files.append(File.generated(config, "index.md", content=front_page()))
    files.append(File.generated(config, "llms.txt", content=llms_txt()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return outside(MARKED.sub(r"```\1", markdown))


def front_page() -> str:
    return (
        (ROOT / "README.md")
        .read_text()
        .replace("](docs/", "](")
        .replace("](how-to/)", "](how-to/public-address.md)")
        .replace("](engines/)", "](engines/http.md)")
        .replace("](reference/)", "](reference/settings.md)")
    )


def outside(markdown: str) -> str:
    """Files of the repository that are no pages are named and not linked."""
    return re.sub(
        r"\[([^\]]+)\]\((?:\.\./)+(?!docs/)[^)]*\)|\[([^\]]+)\]\((?:[A-Z_]+\.md|LICENSE)\)", r"\1\2", markdown
    )


def llms_txt() -> str:
    """A map for assistants: each page with its first sentence."""
    lines = ["# Postern", "", "> " + paragraph((ROOT / "README.md").read_text()), ""]
    for title, folder in (
        ("Pages", "."),
        ("How to", "how-to"),
        ("Engines", "engines"),
        ("Reference", "reference"),
    ):
        lines += [f"## {title}", ""]
        for page in sorted((ROOT / "docs" / folder).glob("*.md")):
            text = page.read_text()
            name = text.partition("\n")[0].removeprefix("# ")
            lines.append(f"- [{name}]({page.relative_to(ROOT / 'docs').as_posix()}): {paragraph(text)}")
        lines.append("")
    lines += [
        "## For programs",
        "",
        "- [OpenAPI](reference/openapi.json)",
        "- [Schema of the YAML file](reference/webhooks.schema.json)",
    ]
    return "\n".join(lines) + "\n"


def paragraph(text: str) -> str:
    """The first one that is prose."""
    for part in text.split("\n\n"):
        if part[:1] not in "#<|`-!" or part.startswith("`postern"):
            plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(part.split())).replace("**", "")
            return plain if len(plain) < 200 else plain[:200].rpartition(" ")[0] + " …"
    return ""
