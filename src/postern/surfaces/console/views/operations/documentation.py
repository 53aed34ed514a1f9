"""The documentation, within the console: it is there where the internet is not, and of the version that runs."""

from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.console import documentation
from postern.surfaces.console.visit import Visit


async def contents(visit: Visit) -> Response:
    return visit.page("documentation/contents.html", groups=documentation.groups())


async def show(visit: Visit) -> Response:
    page = documentation.page(visit.at("page"))
    if page is None:
        raise Refused("not_found", "the documentation has no page of this name")
    return visit.page("documentation/page.html", page=page)
