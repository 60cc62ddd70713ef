"""The server: only this machine, only with the token, only its own page; and the command that starts it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import numpy as np
import pytest
from sklearn.datasets import load_wine

import ravine
from ravine import InvalidInputError, MinimumDensity, explore
from ravine.cli.main import main
from ravine.explorer.exports import EXPORTS

WINE = load_wine(as_frame=True).data
X = WINE.to_numpy()


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    found = explore(MinimumDensity(3).fit(X), X, open_browser=False, session=folder, feature_names=list(WINE))
    yield found
    found.stop()


def ask(address, path="", body=None, method=None, **headers):
    """Status, headers and content of an answer."""
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(address + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def test_it_answers_only_with_the_token(explorer):
    status, headers, page = ask(explorer.address)
    assert status == 200
    assert b"page.js" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    place = urlsplit(explorer.address)
    root = f"http://{place.netloc}/"
    token = place.path.strip("/")
    assert len(token) >= 32
    for wrong in ("", "x" * len(token) + "/", token[:-1] + "/", token, "api/state", token + "x/api/state"):
        assert ask(root, wrong)[0] == 403, wrong
    assert ask(root, f"{token}/api/state")[0] == 200


def test_another_host_or_origin_is_refused(explorer):
    place = urlsplit(explorer.address)
    for host in ("example.com", f"example.com:{place.port}", "127.0.0.1", "[::1]"):
        connection = http.client.HTTPConnection("127.0.0.1", place.port)
        connection.putrequest("GET", place.path + "api/state", skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        assert connection.getresponse().status == 403, host
        connection.close()
    for header in ({"Origin": "http://example.com"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        status, headers, _ = ask(explorer.address, "api/state", **header)
        assert status == 403
        assert "Access-Control-Allow-Origin" not in headers
    same = f"http://{place.netloc}"
    status, headers, _ = ask(
        explorer.address, "api/state", **{"Origin": same, "Sec-Fetch-Site": "same-origin"}
    )
    assert status == 200
    assert "Access-Control-Allow-Origin" not in headers
    assert ask(explorer.address, "api/act", method="OPTIONS")[0] == 405


def test_it_listens_on_the_loopback_address_only(explorer):
    port = f"{urlsplit(explorer.address).port:04X}"
    with open("/proc/net/tcp") as file:
        listening = [line.split()[1] for line in file if f":{port} " in line and " 0A " in line]
    assert listening == [f"0100007F:{port}"]


def test_wrong_requests_are_sentences(explorer):
    for path, body in [
        ("api/act", {"action": "exec"}),
        ("api/act", {"action": "split", "arguments": {"node": 77}}),
        ("api/act", {"action": "split", "arguments": {"other": 1}}),
        ("api/act", []),
    ]:
        status, _, content = ask(explorer.address, path, body)
        assert status == 400, (path, body)
        assert json.loads(content)["error"]
    assert ask(explorer.address, "api/node/99")[0] == 400
    assert ask(explorer.address, "export/passwords")[0] == 404
    assert ask(explorer.address, "../../etc/passwd")[0] in (403, 404)


def post(explorer, path, raw):
    """Status and sentence of the answer to a body as it is."""
    request = urllib.request.Request(explorer.address + path, raw, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def test_no_request_of_a_client_is_an_error_of_the_server(explorer):
    bodies = ["[" * depth + "]" * depth for depth in (900, 990, 100_000)]
    bodies += ['{"action": ' + one + "}" for one in bodies] + ["5", "null", "{}", '{"action": ["split"]}']
    for body in [*bodies, '{"action": "cut", "arguments": {"n_clusters": 1e400}}']:
        status, sentence = post(explorer, "api/act", body.encode())
        assert (status, bool(sentence)) == (400, True), body[:80]
    for node in ("1e400", "-1", "99", '"0"', "[0]", "null"):
        body = f'{{"action": "split", "arguments": {{"node": {node}}}}}'
        status, sentence = post(explorer, "api/act", body.encode())
        assert status == 400, node
        assert "node" in sentence
    assert ask(explorer.address, "api/node/" + "9" * 5000)[0] == 400


@pytest.mark.parametrize("error", [TypeError, KeyError, IndexError, ValueError])
def test_an_error_of_ours_is_logged_and_not_blamed_on_the_client(explorer, monkeypatch, caplog, error):
    def fails(*_):
        raise error("a bug")

    monkeypatch.setattr("ravine.explorer.answers.Answers.summary", fails)
    status, _, content = ask(explorer.address, "api/state")
    assert status == 500
    assert error.__name__ in json.loads(content)["error"]
    assert "/api/state" in caplog.text
    assert "Traceback" in caplog.text
    assert urlsplit(explorer.address).path.strip("/") not in caplog.text
    monkeypatch.setitem(EXPORTS, "script", ("clusters.py", "text/x-python", fails))
    assert ask(explorer.address, "export/script")[0] == 500


def test_one_explorer_at_a_time_has_a_folder(explorer):
    folder = explorer.session.folder
    with pytest.raises(InvalidInputError, match=f"another explorer.*{folder}"):
        explore(MinimumDensity(3).fit(X), X, session=folder, open_browser=False)


def test_the_folder_of_a_stopped_or_refused_explorer_is_free(tmp_path):
    model = MinimumDensity(3).fit(X)
    with pytest.raises(InvalidInputError, match="port") as refused:
        explore(model, X, session=tmp_path, open_browser=False, port=99999)
    for _ in range(2):
        explore(model, X, session=tmp_path, open_browser=False).stop()
    assert refused.tb is not None  # it keeps what the call that failed had, also while a debugger looks at it


def test_a_port_that_cannot_be_used_is_one_sentence(explorer):
    model, used = MinimumDensity(3).fit(X), urlsplit(explorer.address).port
    for port, sentence in [
        (99999, "port .*65535, got 99999"),
        (-1, "port .*got -1"),
        ("80", "port .*got '80'"),
        (used, f"port {used}"),
    ]:
        with pytest.raises(InvalidInputError, match=sentence):
            explore(model, X, port=port, open_browser=False)


def test_the_command_of_the_browser_does_not_show_the_token(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    found = explore(MinimumDensity(3).fit(X), X, session=tmp_path)
    file = tmp_path / "open.html"
    try:
        assert opened == [file.as_uri()]
        assert f"url={found.address}" in file.read_text()
        assert file.stat().st_mode & 0o077 == 0
        # the browser comes from that file, which is another page to it
        cross = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        assert ask(found.address, **cross, **{"Sec-Fetch-Dest": "document"})[0] == 200
        assert ask(found.address, **cross, **{"Sec-Fetch-Dest": "iframe"})[0] == 403
        assert ask(found.address, "api/state", **cross, **{"Sec-Fetch-Dest": "document"})[0] == 403
    finally:
        found.stop()
    assert not file.exists()


def test_exports_are_the_present_state(explorer, tmp_path):
    ask(explorer.address, "api/act", {"action": "split", "arguments": {"node": 2, "n_clusters": 2}})
    ask(explorer.address, "api/act", {"action": "rename", "arguments": {"label": 1, "name": "a,b"}})
    lines = ask(explorer.address, "export/labels")[2].decode().splitlines()
    assert lines[0] == "row,cluster,name"
    assert [int(line.split(",")[1]) for line in lines[1:]] == explorer.labels.tolist()
    path = tmp_path / "model.ravine"
    path.write_bytes(ask(explorer.address, "export/model")[2])
    np.testing.assert_array_equal(ravine.load(path).predict(X), explorer.labels)
    assert ask(explorer.address, "export/sql")[2].startswith(b"SELECT ")
    page = ask(explorer.address, "export/report")[2].decode()
    assert f"{len(np.unique(explorer.labels))} clusters in 178 rows" in page
    assert "<b>a,b</b>: " in page
    assert ask(explorer.address, "export/script")[2].decode() == explorer.script
    assert explorer.tree.n_clusters == 4
    np.testing.assert_array_equal(explorer.model.labels_, explorer.labels)


# --- the command ---


def begin(folder, *options):
    command = [
        sys.executable,
        "-m",
        "ravine",
        "explore",
        "wine.csv",
        "--no-browser",
        "--id",
        "name",
        *options,
    ]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def end(process):
    """Ctrl-C; the exit code, and what was written to standard error."""
    process.send_signal(signal.SIGINT)
    return process.wait(20), process.communicate()[1]


@pytest.mark.slow
def test_the_command_continues_after_a_crash_and_its_script_runs_alone(tmp_path):
    WINE.assign(name=[f"bottle {i}" for i in range(178)]).to_csv(tmp_path / "wine.csv", index=False)
    process, address = begin(tmp_path, "--clusters", "3", "--exclude", "ash")
    try:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/", address), process.stderr.read()
        ask(address, "api/act", {"action": "split", "arguments": {"node": 2, "n_clusters": 2}})
        ask(address, "api/act", {"action": "move", "arguments": {"node": 0, "distance": 0.3}})
        labels = ask(address, "export/labels")[2]
    finally:
        process.kill()  # a crash: nothing can be saved at the end
        process.communicate()
    process, address = begin(tmp_path, "--exclude", "ash", "--quiet")
    try:
        assert ask(address, "export/labels")[2] == labels
        assert labels.startswith(b"id,cluster\nbottle 0,")
        (tmp_path / "script.py").write_bytes(ask(address, "export/script")[2])
    finally:
        code, written = end(process)
    assert code == 0
    assert written == ""
    alone = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True, env=alone)
    found = np.loadtxt(tmp_path / "labels.csv", dtype=int)
    assert found.tolist() == [int(line.split(",")[1]) for line in labels.decode().splitlines()[1:]]


def test_the_command_refuses_what_it_cannot_do(capsys):
    def fails(*arguments):
        assert main(["explore", *arguments]) in (1, 2)
        return capsys.readouterr().err

    assert "file of rows" in fails("a", "b", "c")
    assert "port from 0 to 65535" in fails("a.csv", "--port", "99999")
    assert "absent.csv" in fails("absent.csv")


def test_two_clients_see_the_same_version(explorer):
    before = json.loads(ask(explorer.address, "api/version")[2])["version"]
    ask(
        explorer.address,
        "api/act",
        {"action": "rename", "arguments": {"label": 0, "name": f"at {time.time():.0f}"}},
    )
    assert json.loads(ask(explorer.address, "api/version")[2])["version"] == before + 1
    assert json.loads(ask(explorer.address, "api/state")[2])["version"] == before + 1
