"""What is there to deploy says what the command and the code say; no engine is needed for that.
Tools that check such files read them, too, where they are installed."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from starlette.testclient import TestClient

from dragoman.cli.serve import command as serve
from dragoman.serve.app import make_app
from dragoman.serve.settings import Settings
from tests.serve.clients import make_service

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
OPTIONS = {name for option in serve.params for name in option.opts}
GRACE = 10  # seconds that the last words take after `--drain`


def text(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def check_options(words):
    assert [word for word in words if word.startswith("--") and word not in OPTIONS] == []


def option(words, name):
    """What an option is given."""
    return words[words.index(name) + 1]


def test_the_image():
    lines = text("Dockerfile").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    last = dict(steps)
    (user,) = re.findall(r"useradd .*--uid (\d+)", text("Dockerfile"))
    assert last["USER"] == user  # a cluster sees that it is not root, which a name does not tell
    assert last["STOPSIGNAL"] == "SIGTERM"
    entry = yaml.safe_load(last["ENTRYPOINT"])
    assert entry[:2] == ["dragoman", "serve"]
    check_options(entry)
    assert "--token-file" in entry  # it listens on all addresses
    assert "/health" in last["HEALTHCHECK"]
    code = yaml.safe_load(last["HEALTHCHECK"].partition("CMD ")[2])[2]
    compile(code, "the health check", "exec")
    assert ["COPY", "weights /opt/weights"] in steps  # English into German is on no hub
    assert "DRAGOMAN_WEIGHTS=/opt/weights" in last["ENV"].split()
    for name, rest in steps:
        if name == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source


def test_the_engine_is_sent_what_is_copied_and_no_more():
    lines = text("Dockerfile.dockerignore").splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text("Dockerfile"), re.M)
    assert "*" in lines
    assert sent == {name for names in copied for name in names.split()}


def test_the_user_of_the_image_can_read_what_is_mounted():
    """A file that its owner alone reads is mounted as it is, with its owner."""
    (user,) = re.findall(r"useradd .*--uid (\d+)", text("Dockerfile"))
    for name in ("Dockerfile", "compose.yaml"):
        for made in re.findall(r"base64 > (\S+?)\)?(?: |$)", text(name), re.M):
            assert re.search(rf"^#.*sudo chown {user} .*{re.escape(made)}", text(name), re.M), made


def test_an_engine_that_stops_the_image_lets_talks_finish():
    (seconds,) = re.findall(r"docker run .*--stop-timeout (\d+)", text("Dockerfile"))
    assert int(seconds) > Settings().drain + GRACE


def test_compose():
    services = yaml.safe_load(text("compose.yaml"))["services"]
    interpreter = services["interpreter"]
    check_options(interpreter["command"])
    assert "--secret-file" in interpreter["command"]  # there are several
    minutes = int(interpreter["stop_grace_period"].removesuffix("m"))
    assert minutes * 60 > Settings().drain + GRACE
    assert (DEPLOY / interpreter["build"]["context"] / interpreter["build"]["dockerfile"]).exists()
    assert "interpreter" in services
    assert option(interpreter["command"], "--peer") == "http://interpreter:8020"  # all of them
    assert "ports" not in interpreter  # only the proxy, whose word counts, reaches it
    assert option(interpreter["command"], "--proxy") == "*"


def test_the_proxy_sends_all_of_a_room_to_one_process():
    file = text("Caddyfile")
    assert "{$DRAGOMAN_HOST}" in file
    assert re.search(r"name interpreter\s+port 8020", file)
    pattern = re.search(r"@room path_regexp room (\S+)", file)[1]
    for path in ("speak", "listen", "translation.srt"):
        assert re.search(pattern, f"/v1/rooms/k7f2m9qa/{path}")[1] == "k7f2m9qa"
    for path in ("/v1/rooms", "/v1/interpret", "/room/k7f2m9qa"):
        assert re.search(pattern, path) is None
    assert "request_header @room Room {re.room.1}" in file
    assert "lb_policy header Room" in file
    assert re.search(r"lb_try_duration \d+s\s+fail_duration \d+s", file)  # not to one that is dead


def test_the_unit():
    unit = dict(re.findall(r"^(\w+)=(.*)$", text("dragoman.service"), re.M))
    words = shlex.split(unit["ExecStart"])
    assert words[0].endswith("/dragoman")
    assert words[1] == "serve"
    check_options(words)
    assert "--secret-file" in words  # so that talks outlive a crash
    given = re.findall(r"^LoadCredential=(\w+):", text("dragoman.service"), re.M)
    wanted = re.findall(r"\$\{CREDENTIALS_DIRECTORY\}/(\w+)", unit["ExecStart"])
    assert sorted(given) == sorted(wanted)
    assert int(unit["TimeoutStopSec"]) > Settings().drain + GRACE
    assert unit["User"] == "dragoman"


def test_kubernetes():
    deployment, pods, peers, proxy, inward = yaml.safe_load_all(text("kubernetes.yaml"))
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    check_options(container["args"])
    drain = float(option(container["args"], "--drain"))
    assert drain >= Settings().longest
    assert pod["terminationGracePeriodSeconds"] > drain + GRACE
    # Who follows a talk in a room can come in though no other talk can.
    assert container["readinessProbe"]["httpGet"]["path"] == "/health?full=ok"
    # A token of the cluster would be put below /run/secrets, which is ours and cannot be written.
    assert pod["automountServiceAccountToken"] is False
    assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {"/run/secrets"}
    service = make_service(token="a token that nobody guesses", streams=0)
    service.draining = True  # such a pod is not to be killed, nor is one that is full
    with TestClient(make_app(service)) as web:
        alive = container["livenessProbe"]["httpGet"]["path"]
        assert [web.get(path).status_code for path in (alive, "/health")] == [200, 503]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pods["metadata"]["name"] == "interpreter"  # as the proxy calls them
    assert pods["spec"]["clusterIP"] == "None"  # it wants the addresses of all
    assert option(container["args"], "--peer") == f"http://{peers['metadata']['name']}:8020"
    assert peers["spec"]["clusterIP"] == "None"
    assert peers["spec"]["publishNotReadyAddresses"]  # one that drains has rooms
    for one, behind in ((pods, deployment), (peers, deployment), (inward, proxy)):
        assert one["spec"]["selector"] == behind["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "dragoman.service"])
def test_each_says_how_it_is_started(name):
    commands = [line for line in text(name).splitlines() if line.startswith("#   ")]
    assert any(re.search(r"docker|systemctl", line) for line in commands)


def checks():
    """The commands of docs/service.md, as the environment and the words of each."""
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    block = re.search(r"To check them after a change:\n\n((?:    .*\n)+)", page)[1]
    for line in block.splitlines():
        words = shlex.split(line)
        named = [word for word in words if re.match(r"[A-Z_]+=", word)]
        words = words[len(named) :]
        yield pytest.param(dict(word.split("=", 1) for word in named), words, id=words[0])


@pytest.mark.parametrize(("named", "words"), list(checks()))
def test_tools_that_read_such_files_find_no_fault(named, words, tmp_path):
    *command, name = words
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    file = ROOT / name
    if file.suffix == ".service":  # which is not installed where it says
        file = tmp_path / file.name
        file.write_text(text(file.name).replace("=/opt/dragoman/bin/dragoman ", "=/bin/true "))
    told = subprocess.run(
        [*command, file], env=os.environ | named, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    if command[0] == "systemd-analyze":  # what it does not know it only warns of
        assert told.stderr == ""
