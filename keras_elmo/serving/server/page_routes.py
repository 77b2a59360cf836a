"""page_routes: the live page's files, and the name of the model that it asks for."""

from importlib import resources
from typing import TYPE_CHECKING

from keras_elmo.extras import require
from keras_elmo.serving.server.json_text import encode, text_of
from keras_elmo.serving.server.model_versions import ModelVersions

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

INDEX = "index.html"
_MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # The page's own files and the server that they came from; no script or style inside of the HTML.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # A newer package has a newer page at the same address.
    "Cache-Control": "no-cache",
}


def page_routes(versions: ModelVersions) -> list["BaseRoute"]:
    """Makes the routes of the live page.

    `/` is the page and `/page/NAME` a file of it. `/page/model.json` has the `name` of the served model and what its
    export says of it, {} if that says nothing. All the rest the page learns from the REST interface, as any other
    client does.

    Args:
        versions: The model.

    Returns:
        The routes, for `GET` and `HEAD`.

    Raises:
        ModuleNotFoundError: if Starlette is not installed, with the command to install it.
    """
    responses = require("starlette.responses", "serve")
    routing = require("starlette.routing", "serve")

    def file(name: str, content: bytes) -> "Response":
        suffix = name[name.rindex(".") :]
        return responses.Response(content, headers=_HEADERS, media_type=_MEDIA_TYPES[suffix])

    # Read once: nothing but these is ever answered, whatever is asked for.
    folder = resources.files("keras_elmo.serving") / "page"
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    async def index(request: "Request") -> "Response":
        return file(INDEX, files[INDEX])

    async def model(request: "Request") -> "Response":
        about = {"name": versions.name, "description": versions.description}
        return responses.Response(
            encode(text_of(about)), headers=_HEADERS, media_type="application/json"
        )

    def asset(name: str) -> "BaseRoute":
        async def answer(request: "Request") -> "Response":
            return file(name, files[name])

        return routing.Route(f"/page/{name}", answer)

    return [
        routing.Route("/", index),
        routing.Route("/page/model.json", model),
        *(asset(name) for name in sorted(files) if name != INDEX),
    ]
