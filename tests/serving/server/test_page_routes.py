"""The live page's files as the server hands them out; what they do is tested in a browser, in tests/serving/page."""

import http.client
import json
import re
from importlib import resources

import pytest

from keras_elmo.serving.server import LocalServer
from keras_elmo.serving.server.model_version import DESCRIPTION_FILE

PAGE = resources.files("keras_elmo.serving") / "page"


def get(server, path, method="GET"):
    connection = http.client.HTTPConnection(server.rest_address, timeout=120)
    connection.request(method, path)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def test_the_page_and_its_files(server):
    response, content = get(server, "/")
    assert response.status == 200
    assert response.getheader("content-type") == "text/html; charset=utf-8"
    assert content == (PAGE / "index.html").read_bytes()
    kinds = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    named = set(re.findall(r'"/page/([^"]+)"', content.decode()))
    assert named == {"icon.svg", "style.css", "main.js"}
    files = {path.name for path in PAGE.iterdir()} - {"index.html"}
    assert named < files
    for name in files:
        response, content = get(server, f"/page/{name}")
        assert response.status == 200
        assert (
            response.getheader("content-type").partition(";")[0] == kinds[f".{name.split('.')[1]}"]
        )
        assert content == (PAGE / name).read_bytes()


def test_nothing_comes_from_elsewhere(server):
    response, _ = get(server, "/", "HEAD")
    policy = dict(
        part.split(" ", 1) for part in response.getheader("content-security-policy").split("; ")
    )
    assert policy.pop("default-src") == "'none'"
    assert set(policy.values()) == {"'self'", "'none'"}
    assert response.getheader("x-content-type-options") == "nosniff"
    assert response.getheader("referrer-policy") == "no-referrer"
    for path in PAGE.iterdir():
        addresses = re.findall(r"\w+://[^\s\"']+", path.read_text(encoding="utf-8"))
        # The name of a language of pictures is no address that anybody asks.
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, path.name


@pytest.mark.parametrize(
    "path", ["/page/", "/page/../rest_app.py", "/page/%2e%2e/local_server.py", "/page/index.html"]
)
def test_nothing_else_is_handed_out(server, path):
    assert get(server, path)[0].status == 404


def test_the_name_of_the_model(server):
    response, content = get(server, "/page/model.json")
    assert response.getheader("content-type") == "application/json"
    assert json.loads(content) == {"name": "tiny", "description": {}}


@pytest.mark.parametrize(
    ("written", "description"),
    [('{"language": "zh"}', {"language": "zh"}), ("[1]", {}), ("no JSON", {})],
)
def test_what_the_export_says(model_dir, written, description):
    file = model_dir / "1" / DESCRIPTION_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(written, encoding="utf-8")
    with LocalServer(model_dir, 0, 0) as server:
        assert json.loads(get(server, "/page/model.json")[1])["description"] == description
