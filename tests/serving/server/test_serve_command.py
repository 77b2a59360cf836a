"""`keras-elmo serve` as a user types it."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.request

import pytest
import serving
from serving import install_version

from keras_elmo.serving.server.real_server import BINARY


def start(*arguments, **options):
    environment = {**os.environ, **options.pop("env", {})}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.Popen(
        [sys.executable, "-m", "_keras_elmo_command", "serve", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


def lines_until(process, start_of_last):
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip("\n"))
        if line.startswith(start_of_last):
            return lines
    raise AssertionError(lines)


def test_what_it_says_and_how_it_ends(model_dir):
    with start(model_dir, "--rest-port", 0, "--grpc-port", 0) as process:
        try:
            lines = lines_until(process, "Ctrl-C")
            assert lines[0] == "This is keras_elmo's development server, not TensorFlow Serving."
            assert lines[1] == "Model tiny, version 1"
            rest_url = lines[3].removeprefix("REST  ")
            assert rest_url.startswith("http://127.0.0.1:")
            assert lines[2] == f"Page  {rest_url}/"
            assert lines[4].startswith("gRPC  127.0.0.1:")
            assert lines[5].startswith("Try:  curl -d '{")
            assert lines[5].endswith(f" {rest_url}/v1/models/tiny:predict")
            assert lines[6:] == ["Ctrl-C ends it."]
            body = json.dumps({"instances": ["a bc"]}).encode()
            url = f"{rest_url}/v1/models/tiny:predict"
            answer = json.load(urllib.request.urlopen(url, body, timeout=120))
            assert answer["predictions"][0]["default"] == [1.5, 1.0]
            # A connection that stays open and asks nothing keeps nobody waiting.
            idle = http.client.HTTPConnection(rest_url.removeprefix("http://"), timeout=120)
            idle.request("GET", "/v1/models/tiny")
            idle.getresponse().read()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
            idle.close()
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", "")


def test_a_new_version_is_told(model_dir, other_model):
    with start(model_dir, "--rest-port", 0, "--grpc-port", 0) as process:
        try:
            lines_until(process, "Ctrl-C")
            (model_dir / "2").mkdir()
            (line,) = lines_until(process, "keras-elmo: ")
            assert line.startswith(f"keras-elmo: {model_dir}/2 does not load: ")
            assert line.endswith(" Version 1 stays.")
            install_version(other_model, model_dir / "3")
            (line,) = lines_until(process, "keras-elmo: ")
            assert line == (
                "keras-elmo: Version 3 is served now; version 1 ends with its last request."
            )
            process.terminate()
            assert process.wait(300) == 0
        finally:
            process.kill()


def test_a_port_in_use(refused, model_dir):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert refused("serve", model_dir, "--rest-port", port, "--grpc-port", 0) == (
            f"keras-elmo: Port {port} of 127.0.0.1 is in use: stop what uses it, or give another by "
            "`--rest-port`.\n"
        )


def test_what_cannot_be_served(refused, model_dir, tmp_path):
    ports = ("--rest-port", 0, "--grpc-port", 0)
    for way in (ports, ("--binary",), ("--docker",)):
        assert "is not a folder" in refused("serve", tmp_path / "nowhere", *way)
        assert "has no version folders" in refused("serve", tmp_path, *way)
        assert "is a SavedModel" in refused("serve", model_dir / "1", *way)
    (model_dir / "2").mkdir()
    assert "tiny/2 cannot be served: " in refused("serve", model_dir, *ports)


def test_without_starlette(refused, model_dir, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "uvicorn"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    message = refused("serve", model_dir, "--rest-port", 0, "--grpc-port", 0)
    assert message == (
        "keras-elmo: uvicorn is not installed. Install it with: pip install uvicorn (extra `serve` of keras-elmo)\n"
    )


def test_options_that_do_not_go_together(refused, model_dir):
    assert "`--docker` or `--binary`, not both" in refused(
        "serve", model_dir, "--docker", "--binary"
    )
    assert "`--host` has no effect with `--binary`" in refused(
        "serve", model_dir, "--binary", "--host", "127.0.0.1"
    )
    assert "takes no port 0" in refused("serve", model_dir, "--docker", "--rest-port", 0)
    assert "--rest-port" in refused("serve", model_dir, "--rest-port", 70000)


@pytest.mark.parametrize(("way", "program"), [("--binary", BINARY), ("--docker", "docker")])
def test_the_real_one_takes_its_place(model_dir, tmp_path, way, program):
    """An executable that says who it is stands on PATH: it runs in the very process, with its arguments."""
    executable = tmp_path / program
    executable.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "if sys.argv[1:] != ['info']: print(os.getpid(), *sys.argv[1:], sep='\\n')\n"
    )
    executable.chmod(stat.S_IRWXU)
    with start(model_dir, way, env={"PATH": str(tmp_path)}) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0
    pid, *arguments = out.splitlines()
    assert int(pid) == process.pid
    assert " ".join([str(executable), *arguments]) + "\n" == err
    expected = "--port=8500" if way == "--binary" else "--publish=127.0.0.1:8500:8500"
    assert expected in arguments


def test_the_real_ones_that_are_missing(refused, model_dir, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert f"{BINARY} is not on PATH" in refused("serve", model_dir, "--binary")
    assert "docker is not on PATH" in refused("serve", model_dir, "--docker")


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_help(command, columns):
    result = command("serve", "-h", columns=columns)
    assert (result.code, result.err) == (0, "")
    assert all(len(line) <= columns for line in result.out.splitlines())
    for option in ("--rest-port", "--grpc-port", "--host", "--docker", "--binary"):
        assert option in result.out


def test_the_benchmark(model_dir, tmp_path, capsys):
    file = tmp_path / "numbers.json"
    serving.main([str(model_dir), "--requests", "40", "--clients", "4", "--json", str(file)])
    report = json.loads(file.read_text(encoding="utf-8"))
    for found in report["interfaces"].values():
        assert (found["wrong"], found["lost"]) == (0, 0)
        assert found["answered"] >= 40
        assert 0 < found["p50_ms"] <= found["p99_ms"]
        # Two models were loaded and one is gone; no request leaves anything.
        assert found["megabytes_in_the_end"] < 1.2 * found["megabytes_in_the_middle"]
    assert "requests/s" in capsys.readouterr().out


def is_open(host, port):
    try:
        socket.create_connection((host, port), 120).close()
    except ConnectionError:
        return False
    return True


def test_the_second_ctrl_c_does_not_wait(model_dir):
    """A request whose body never comes would keep the server for a minute."""
    with start(model_dir, "--rest-port", 0, "--grpc-port", 0) as process:
        try:
            address = lines_until(process, "Ctrl-C")[3].removeprefix("REST  http://")
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), 120) as connection:
                connection.sendall(
                    b"POST /v1/models/tiny:predict HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n"
                    b"Expect: 100-continue\r\n\r\n"
                )
                # The server has begun to read.
                assert connection.recv(100).startswith(b"HTTP/1.1 100")
                process.send_signal(signal.SIGINT)
                while is_open(host, int(port)):
                    pass
                assert process.poll() is None
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 130
        finally:
            process.kill()
            process.communicate()
